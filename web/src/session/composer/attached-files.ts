// Attached files: the files of a prompt being written, and their uploads.
import { computed, signal } from '@preact/signals';
import { Failure } from '@switchboard/client';
import { explain } from '../../auth';
import { text } from '../../text';
import type { UploadedFile } from './drafts';
import { upload } from './upload';

export interface AttachedFile {
  readonly key: number;
  readonly name: string;
  readonly size: number;
  readonly type: string;
  readonly state: 'uploading' | 'ready' | 'failed';
  /** The uploaded part, from 0 to 1; undefined while queued. */
  readonly progress?: number;
  /** The attachment id, once uploaded. */
  readonly id?: string;
  readonly error?: string;
  /** Retrying would fail the same way. */
  readonly isFinal?: boolean;
  /** An object URL to preview an image. */
  readonly previewUrl?: string;
  /** Absent for files restored from a draft. */
  readonly file?: File;
}

/** The gateway accepts two uploads per user at a time. */
const MAX_CONCURRENT_UPLOADS = 2;
let lastKey = 0;

export class AttachedFiles {
  readonly list = signal<readonly AttachedFile[]>([]);
  readonly isUploading = computed(() => this.list.value.some(({ state }) => state === 'uploading'));
  readonly hasFailed = computed(() => this.list.value.some(({ state }) => state === 'failed'));
  readonly #uploads = new Map<number, AbortController>();

  /** `session`: resolves with the session to upload to, creating it if necessary. */
  constructor(readonly session: () => Promise<string>, keptFiles: readonly UploadedFile[] = []) {
    this.restore(keptFiles);
  }

  /** The uploaded files, as drafts and prompts refer to them. */
  get uploaded(): UploadedFile[] {
    return this.list.value.flatMap(({ id, name, size, type }) => (id === undefined ? [] : [{ id, name, size, type }]));
  }

  /** An image that fails to load is shown as a plain file. */
  hidePreview(key: number): void {
    this.#change(key, { previewUrl: undefined });
  }

  /** Adds files and starts uploading them. */
  add(files: Iterable<File>, maxBytes: number | undefined): void {
    const added = [...files].map((file): AttachedFile => {
      const common = { key: (lastKey += 1), name: file.name || text.composer.unnamedFile, size: file.size, type: file.type, file };
      const error = file.size === 0 ? text.composer.emptyFile : maxBytes !== undefined && file.size > maxBytes ? text.composer.tooBig(maxBytes) : undefined;
      if (error !== undefined) return { ...common, state: 'failed', error, isFinal: true };
      return { ...common, state: 'uploading', ...(isImage(file.type) ? { previewUrl: URL.createObjectURL(file) } : {}) };
    });
    this.list.value = [...this.list.value, ...added];
    this.#startUploads();
  }

  /** Adds files that are already uploaded. */
  restore(files: readonly UploadedFile[]): void {
    const knownIds = new Set(this.list.value.map(({ id }) => id));
    const restored = files.filter(({ id }) => !knownIds.has(id)).map((file): AttachedFile => ({ ...file, key: (lastKey += 1), state: 'ready' }));
    if (restored.length > 0) this.list.value = [...this.list.value, ...restored];
  }

  remove(key: number): void {
    this.#uploads.get(key)?.abort();
    const removed = this.list.value.find((file) => file.key === key);
    if (removed?.previewUrl) URL.revokeObjectURL(removed.previewUrl);
    this.list.value = this.list.value.filter((file) => file.key !== key);
    this.#startUploads();
  }

  retry(key: number): void {
    this.#change(key, { state: 'uploading', error: undefined, progress: undefined });
    this.#startUploads();
  }

  /** Removes all files. */
  clear(): void {
    for (const { key } of this.list.value) this.remove(key);
  }

  #startUploads(): void {
    for (const file of this.list.value) {
      if (this.#uploads.size >= MAX_CONCURRENT_UPLOADS) return;
      if (file.state === 'uploading' && !this.#uploads.has(file.key)) void this.#upload(file);
    }
  }

  async #upload({ key, file }: AttachedFile): Promise<void> {
    if (!file) return;
    const abort = new AbortController();
    this.#uploads.set(key, abort);
    try {
      const session = await this.session();
      if (abort.signal.aborted) return;
      const { id, name, size, type } = await upload(session, file, (part) => this.#change(key, { progress: part }), abort.signal);
      this.#change(key, { state: 'ready', id, name, size, type });
    } catch (error) {
      const isFinal = error instanceof Failure && error.status === 413;
      if (!abort.signal.aborted) this.#change(key, { state: 'failed', error: explain(error), isFinal });
    } finally {
      this.#uploads.delete(key);
      this.#startUploads();
    }
  }

  #change(key: number, changes: { [K in keyof AttachedFile]?: AttachedFile[K] | undefined }): void {
    this.list.value = this.list.value.map((file) => (file.key === key ? ({ ...file, ...changes } as AttachedFile) : file));
  }
}

/** Formats that every browser shows and that cannot contain scripts. */
function isImage(type: string): boolean {
  return /^image\/(png|jpeg|gif|webp|avif)$/.test(type);
}
