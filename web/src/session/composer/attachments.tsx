// The files in the box: small cards with how far each is.
import { Icon, IconButton } from '../../parts/icon';
import { text } from '../../text';
import type { Attached, Files } from './files';

const words = text.composer;

export function Attachments({ files }: { files: Files }) {
  if (files.list.value.length === 0) return null;
  return (
    <ul class="attachments plain" aria-label={words.attached}>
      {files.list.value.map((file) => (
        <li class={`attachment ${file.state}`} key={file.key} data-part="attachment" data-state={file.state}>
          {file.url ? <img src={file.url} alt="" onError={() => files.hidePicture(file.key)} /> : <span class="attachment-picture"><Icon name="file" /></span>}
          <span class="attachment-words">
            <span class="attachment-name" title={file.name}>{file.name}</span>
            <Standing file={file} />
          </span>
          {file.state === 'failed' && !file.isHopeless && (
            <button type="button" class="button quiet small" aria-label={words.retryFile(file.name)} onClick={() => files.retry(file.key)}>{text.common.retry}</button>
          )}
          <IconButton name="close" label={words.remove(file.name)} onClick={() => files.remove(file.key)} />
        </li>
      ))}
    </ul>
  );
}

function Standing({ file }: { file: Attached }) {
  switch (file.state) {
    case 'failed':
      return <span class="attachment-why small" role="alert">{file.why}</span>;
    case 'uploading':
      return file.part === undefined
        ? <span class="soft small">{words.uploadWaits}</span>
        : <progress value={file.part} max={1} aria-label={words.uploadOf(file.name)}>{words.uploading(Math.round(file.part * 100))}</progress>;
    default:
      return <span class="soft small">{words.size(file.size)}</span>;
  }
}
