// The files that go with what is being written: chosen, under way, there.
import { computed, signal } from '@preact/signals';
import { Failure } from '@switchboard/client';
import { explain } from '../../account';
import { text } from '../../text';
import type { KeptFile } from './drafts';
import { upload } from './upload';

/** A file in the box. */
export interface Attached {
  readonly key: number;
  readonly name: string;
  readonly size: number;
  readonly type: string;
  readonly state: 'uploading' | 'ready' | 'failed';
  /** How much of it has left, from 0 to 1; nothing as long as it waits for its turn. */
  readonly part?: number;
  /** What the gateway calls it. */
  readonly id?: string;
  /** Why it failed, in words. */
  readonly why?: string;
  /** To try it again would change nothing. */
  readonly isHopeless?: boolean;
  /** A picture of it. */
  readonly url?: string;
  /** Absent if the page was loaded anew since. */
  readonly file?: File;
}

/** The gateway takes two of one user at a time. */
const AT_ONCE = 2;
let last = 0;

/** The files of one box. */
export class Files {
  readonly list = signal<readonly Attached[]>([]);
  readonly isUploading = computed(() => this.list.value.some(({ state }) => state === 'uploading'));
  readonly hasFailed = computed(() => this.list.value.some(({ state }) => state === 'failed'));
  readonly #stops = new Map<number, AbortController>();

  /** `session`: to which they are brought; it may have to be made first. */
  constructor(readonly session: () => Promise<string>, kept: readonly KeptFile[] = []) {
    this.restore(kept);
  }

  /** What a draft or a prompt has to know of those that are there. */
  get kept(): KeptFile[] {
    return this.list.value.flatMap(({ id, name, size, type }) => (id === undefined ? [] : [{ id, name, size, type }]));
  }

  /** A picture that cannot be shown is a file like any other. */
  hidePicture(key: number): void {
    this.#change(key, { url: undefined });
  }

  /** Takes files and brings them at once. `most`: bytes that one may have. */
  add(files: Iterable<File>, most: number | undefined): void {
    const added = [...files].map((file): Attached => {
      const about = { key: (last += 1), name: file.name || text.composer.unnamedFile, size: file.size, type: file.type, file };
      const why = file.size === 0 ? text.composer.emptyFile : most !== undefined && file.size > most ? text.composer.tooBig(most) : undefined;
      if (why !== undefined) return { ...about, state: 'failed', why, isHopeless: true };
      return { ...about, state: 'uploading', ...(isPicture(file.type) ? { url: URL.createObjectURL(file) } : {}) };
    });
    this.list.value = [...this.list.value, ...added];
    this.#pump();
  }

  /** Takes back files that are at the gateway already. */
  restore(kept: readonly KeptFile[]): void {
    const known = new Set(this.list.value.map(({ id }) => id));
    const back = kept.filter(({ id }) => !known.has(id)).map((file): Attached => ({ ...file, key: (last += 1), state: 'ready' }));
    if (back.length > 0) this.list.value = [...this.list.value, ...back];
  }

  remove(key: number): void {
    this.#stops.get(key)?.abort();
    const gone = this.list.value.find((file) => file.key === key);
    if (gone?.url) URL.revokeObjectURL(gone.url);
    this.list.value = this.list.value.filter((file) => file.key !== key);
    this.#pump();
  }

  retry(key: number): void {
    this.#change(key, { state: 'uploading', why: undefined, part: undefined });
    this.#pump();
  }

  /** They have left with a prompt, or the box is gone. */
  clear(): void {
    for (const { key } of this.list.value) this.remove(key);
  }

  #pump(): void {
    for (const file of this.list.value) {
      if (this.#stops.size >= AT_ONCE) return;
      if (file.state === 'uploading' && !this.#stops.has(file.key)) void this.#bring(file);
    }
  }

  async #bring({ key, file }: Attached): Promise<void> {
    if (!file) return;
    const stop = new AbortController();
    this.#stops.set(key, stop);
    try {
      const session = await this.session();
      if (stop.signal.aborted) return;
      const { id, name, size, type } = await upload(session, file, (part) => this.#change(key, { part }), stop.signal);
      this.#change(key, { state: 'ready', id, name, size, type });
    } catch (error) {
      const isHopeless = error instanceof Failure && error.status === 413;
      if (!stop.signal.aborted) this.#change(key, { state: 'failed', why: explain(error), isHopeless });
    } finally {
      this.#stops.delete(key);
      this.#pump();
    }
  }

  #change(key: number, what: { [K in keyof Attached]?: Attached[K] | undefined }): void {
    this.list.value = this.list.value.map((file) => (file.key === key ? ({ ...file, ...what } as Attached) : file));
  }
}

/** What every browser can show; not what could run in it. */
function isPicture(type: string): boolean {
  return /^image\/(png|jpeg|gif|webp|avif)$/.test(type);
}
