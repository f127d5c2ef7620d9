// Files that came with a prompt.
import type { Protocol } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../../account';
import { Icon } from '../../parts/icon';
import { say } from '../../parts/toast';
import { text } from '../../text';
import { ask } from '../open';

/** Only these are ever opened in the page: anything else might be a program. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
/** How long a browser may take to begin with a download. */
const DOWNLOAD_MS = 60_000;

export function Files({ sessionId, files }: { sessionId: string; files: readonly Protocol.AskedFile[] }) {
  if (files.length === 0) return null;
  return (
    <ul class="plain files" aria-label={text.transcript.files}>
      {files.map((file, place) => (
        <li key={file.attachmentId ?? place}>
          <File sessionId={sessionId} file={file} />
        </li>
      ))}
    </ul>
  );
}

function File({ sessionId, file }: { sessionId: string; file: Protocol.AskedFile }) {
  const { attachmentId, name = text.transcript.file, type = '', size } = file;
  const [isBusy, setBusy] = useState(false);
  const isPicture = PICTURES.has(type);
  const inside = (
    <>
      {isPicture && attachmentId ? <Preview sessionId={sessionId} id={attachmentId} type={type} /> : <Icon name="file" />}
      <span class="file-name">{name}</span>
      {size !== undefined && <span class="soft small">{text.transcript.bytes(size)}</span>}
    </>
  );
  if (!attachmentId) return <span class="file">{inside}</span>;
  const onClick = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      hand(URL.createObjectURL(await load(sessionId, attachmentId, type)), name, isPicture);
    } catch (error) {
      say(explain(error), 'error');
    } finally {
      setBusy(false);
    }
  };
  const label = isPicture ? text.transcript.openFile(name) : text.transcript.downloadFile(name);
  return (
    <button type="button" class="file" aria-label={label} title={label} aria-busy={isBusy} onClick={() => void onClick()}>
      {inside}
    </button>
  );
}

/** A small picture, loaded once it is seen. */
function Preview({ sessionId, id, type }: { sessionId: string; id: string; type: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState('');
  useEffect(() => {
    let made = '';
    let isGone = false;
    const seen = new IntersectionObserver(async ([entry]) => {
      if (!entry?.isIntersecting) return;
      seen.disconnect();
      const blob = await load(sessionId, id, type).catch(() => undefined);
      if (!blob || isGone) return;
      made = URL.createObjectURL(blob);
      setUrl(made);
    });
    if (place.current) seen.observe(place.current);
    return () => {
      isGone = true;
      seen.disconnect();
      if (made) URL.revokeObjectURL(made);
    };
  }, [sessionId, id, type]);
  return (
    <span class="preview" ref={place}>
      {url ? <img src={url} alt="" onError={() => setUrl('')} /> : <Icon name="file" />}
    </span>
  );
}

async function load(sessionId: string, id: string, type: string): Promise<Blob> {
  const response = await ask(`/api/sessions/${sessionId}/attachments/${id}`);
  return new Blob([await response.arrayBuffer()], { type: PICTURES.has(type) ? type : 'application/octet-stream' });
}

function hand(url: string, name: string, isPicture: boolean): void {
  const link = document.createElement('a');
  link.href = url;
  if (isPicture) link.target = '_blank';
  else link.download = name;
  link.rel = 'noopener';
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), DOWNLOAD_MS);
}
