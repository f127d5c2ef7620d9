// Prompt files: the attachments of a prompt.
import type { Protocol } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { useToastedAction } from '../../components/use-action';
import { download } from '../../download';
import { text } from '../../text';
import { fetchFromGateway } from '../open-session';

/** Only these are opened in the browser: other files could contain scripts. */
const SAFE_IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

export function PromptFiles({ sessionId, files }: { sessionId: string; files: readonly Protocol.AskedFile[] }) {
  if (files.length === 0) return null;
  return (
    <ul class="plain files" aria-label={text.transcript.files}>
      {files.map((file, placeholder) => (
        <li key={file.attachmentId ?? placeholder}>
          <FileButton sessionId={sessionId} file={file} />
        </li>
      ))}
    </ul>
  );
}

function FileButton({ sessionId, file }: { sessionId: string; file: Protocol.AskedFile }) {
  const { attachmentId, name = text.transcript.file, type = '', size } = file;
  const isImage = SAFE_IMAGES.has(type);
  const { isBusy, run } = useToastedAction(async () => {
    if (attachmentId) download(await loadFile(sessionId, attachmentId, type), name, isImage ? 'open' : 'save');
  });
  const content = (
    <>
      {isImage && attachmentId ? <Preview sessionId={sessionId} id={attachmentId} type={type} /> : <Icon name="file" />}
      <span class="file-name">{name}</span>
      {size !== undefined && <span class="soft small">{text.transcript.bytes(size)}</span>}
    </>
  );
  if (!attachmentId) return <span class="file">{content}</span>;
  const label = isImage ? text.transcript.openFile(name) : text.transcript.downloadFile(name);
  return (
    <button type="button" class="file" aria-label={label} title={label} aria-busy={isBusy} onClick={run}>
      {content}
    </button>
  );
}

/** A thumbnail, loaded once visible. */
function Preview({ sessionId, id, type }: { sessionId: string; id: string; type: string }) {
  const index = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState('');
  useEffect(() => {
    let objectUrl = '';
    let isUnmounted = false;
    const observer = new IntersectionObserver(async ([entry]) => {
      if (!entry?.isIntersecting) return;
      observer.disconnect();
      const blob = await loadFile(sessionId, id, type).catch(() => undefined);
      if (!blob || isUnmounted) return;
      objectUrl = URL.createObjectURL(blob);
      setUrl(objectUrl);
    });
    if (index.current) observer.observe(index.current);
    return () => {
      isUnmounted = true;
      observer.disconnect();
      if (objectUrl) URL.revokeObjectURL(objectUrl);
    };
  }, [sessionId, id, type]);
  return (
    <span class="preview" ref={index}>
      {url ? <img src={url} alt="" onError={() => setUrl('')} /> : <Icon name="file" />}
    </span>
  );
}

async function loadFile(sessionId: string, id: string, type: string): Promise<Blob> {
  const response = await fetchFromGateway(`/api/sessions/${sessionId}/attachments/${id}`);
  return new Blob([await response.arrayBuffer()], { type: SAFE_IMAGES.has(type) ? type : 'application/octet-stream' });
}
