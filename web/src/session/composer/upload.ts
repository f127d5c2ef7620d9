// Brings one file to the gateway.
import { Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { account } from '../../account';

/** How long to wait if the gateway is busy and does not say how long. */
const BUSY_MS = 2_000;
const BUSY_TRIES = 8;

interface Answer {
  status: number;
  body: string;
  retryAfterMs: number | undefined;
}

/** Uploads a file to a session. `told` hears how much of it has left, from 0 to 1. */
export async function upload(session: string, file: File, told: (part: number) => void, stop: AbortSignal): Promise<Http.AttachmentBody> {
  let isRenewed = false;
  for (let tries = 1; ; tries += 1) {
    const { login } = account();
    const token = login.token;
    const answer = await post(`${login.reach.base}/api/sessions/${session}/attachments?name=${encodeURIComponent(file.name)}`, token, file, told, stop);
    if (answer.status === 201) return JSON.parse(answer.body) as Http.AttachmentBody;
    if (answer.status === 401 && !isRenewed) {
      isRenewed = true;
      await login.renew(token);
    } else if (answer.status === 503 && tries < BUSY_TRIES) {
      await pause(answer.retryAfterMs ?? BUSY_MS, stop);
    } else {
      throw await failureOf(answer);
    }
  }
}

/** By XMLHttpRequest: `fetch` does not tell how far an upload is. */
function post(url: string, token: string, file: File, told: (part: number) => void, stop: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open('POST', url);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => told(total > 0 ? loaded / total : 0);
    request.onload = () => {
      const seconds = Number(request.getResponseHeader('Retry-After'));
      resolve({ status: request.status, body: request.responseText, retryAfterMs: seconds > 0 ? seconds * 1000 : undefined });
    };
    request.onerror = () => reject(new Failure('UNREACHABLE', 'The upload broke off.'));
    request.onabort = () => reject(stop.reason);
    request.onloadend = () => stop.removeEventListener('abort', abort);
    stop.addEventListener('abort', abort);
    request.send(file);
  });
}

function failureOf({ status, body }: Answer): Promise<Failure> {
  // A refusal before the file was read may have no status at all.
  return status === 0 ? Promise.resolve(new Failure('UNREACHABLE', '')) : Failure.of(new Response(body, { status }));
}

function pause(waitMs: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, waitMs);
    stop.addEventListener('abort', () => (clearTimeout(timer), reject(stop.reason)), { once: true });
  });
}
