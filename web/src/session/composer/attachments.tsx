// Attachments: the files of the prompt, with their upload progress.
import { Icon, IconButton } from '../../components/icon';
import { text } from '../../text';
import type { AttachedFile, AttachedFiles } from './attached-files';

const strings = text.composer;

export function Attachments({ files }: { files: AttachedFiles }) {
  if (files.list.value.length === 0) return null;
  return (
    <ul class="attachments plain" aria-label={strings.attached}>
      {files.list.value.map((file) => (
        <li class={`attachment ${file.state}`} key={file.key} data-part="attachment" data-state={file.state}>
          {file.previewUrl ? <img src={file.previewUrl} alt="" onError={() => files.hidePreview(file.key)} /> : <span class="attachment-picture"><Icon name="file" /></span>}
          <span class="attachment-info">
            <span class="attachment-name" title={file.name}>{file.name}</span>
            <FileStatus file={file} />
          </span>
          {file.state === 'failed' && !file.isFinal && (
            <button type="button" class="button quiet small" aria-label={strings.retryFile(file.name)} onClick={() => files.retry(file.key)}>{text.common.retry}</button>
          )}
          <IconButton name="close" label={strings.remove(file.name)} onClick={() => files.remove(file.key)} />
        </li>
      ))}
    </ul>
  );
}

function FileStatus({ file }: { file: AttachedFile }) {
  switch (file.state) {
    case 'failed':
      return <span class="attachment-why small" role="alert">{file.error}</span>;
    case 'uploading':
      return file.progress === undefined
        ? <span class="soft small">{strings.uploadWaits}</span>
        : <progress value={file.progress} max={1} aria-label={strings.uploadOf(file.name)}>{strings.uploading(Math.round(file.progress * 100))}</progress>;
    default:
      return <span class="soft small">{strings.size(file.size)}</span>;
  }
}
