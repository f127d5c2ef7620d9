// Upload: sends one file to the gateway, with progress.
import { Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { account } from '../../auth';

/** The wait when the gateway is busy and names none. */
const BUSY_WAIT_MS = 2_000;
const MAX_BUSY_TRIES = 8;

interface UploadResponse {
  status: number;
  body: string;
  retryAfterMs: number | undefined;
}

/** Uploads a file to a session. `onProgress` gets the uploaded part, from 0 to 1. */
export async function upload(sessionId: string, file: File, onProgress: (progress: number) => void, signal: AbortSignal): Promise<Http.AttachmentBody> {
  let isRenewed = false;
  for (let tries = 1; ; tries += 1) {
    const { login } = account();
    const token = login.token;
    const response = await post(`${login.endpoint.base}/api/sessions/${sessionId}/attachments?name=${encodeURIComponent(file.name)}`, token, file, onProgress, signal);
    if (response.status === 201) return JSON.parse(response.body) as Http.AttachmentBody;
    if (response.status === 401 && !isRenewed) {
      isRenewed = true;
      await login.renew(token);
    } else if (response.status === 503 && tries < MAX_BUSY_TRIES) {
      await wait(response.retryAfterMs ?? BUSY_WAIT_MS, signal);
    } else {
      throw await failureOf(response);
    }
  }
}

/** XMLHttpRequest, because `fetch` reports no upload progress. */
function post(url: string, token: string, file: File, onProgress: (progress: number) => void, signal: AbortSignal): Promise<UploadResponse> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open('POST', url);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onload = () => {
      const seconds = Number(request.getResponseHeader('Retry-After'));
      resolve({ status: request.status, body: request.responseText, retryAfterMs: seconds > 0 ? seconds * 1000 : undefined });
    };
    request.onerror = () => reject(new Failure('UNREACHABLE', 'The upload broke off.'));
    request.onabort = () => reject(signal.reason);
    request.onloadend = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort);
    request.send(file);
  });
}

function failureOf({ status, body }: UploadResponse): Promise<Failure> {
  // A refusal before the file was read can arrive as status 0.
  return status === 0 ? Promise.resolve(new Failure('UNREACHABLE', '')) : Failure.fromResponse(new Response(body, { status }));
}

function wait(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, waitMs);
    signal.addEventListener('abort', () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
