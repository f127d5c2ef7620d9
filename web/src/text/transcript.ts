// Transcript text: the conversation.
import { count } from './count';

const number = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

export const transcript = {
  name: 'Conversation',
  empty: 'Nothing has been said yet. Write a prompt below to begin.',
  opening: 'Opening the conversation…',

  // Older entries.
  loadingOlder: 'Loading what was said earlier…',
  beginning: 'This is the beginning of the conversation.',
  olderFailed: 'What was said earlier could not be loaded.',
  loadOlder: 'Load what was said earlier',

  // Newer entries.
  toLatest: 'Jump to latest',
  toNew: (many: number) => `Jump to latest, ${number.format(many)} new`,
  finished: (words: string) => `The agent said: ${words}`,
  failed: 'The run failed.',

  // Answers.
  sources: (names: readonly string[]) => `Sources: ${names.join(', ')}`,

  // Markdown.
  table: 'Table',
  code: 'Code',
  copyCode: 'Copy this code',
  copyFailed: 'The browser does not let this page copy. Select the text and copy it yourself.',
  done: 'done',
  toDo: 'to do',
  picture: (alt: string) => (alt ? `Picture from another site, not loaded: ${alt}` : 'Picture from another site, not loaded'),

  // Entries.
  you: 'You',
  prompt: 'Prompt',
  answer: 'Answer',
  system: 'Added to the conversation',
  planning: 'Plan only',
  copyPrompt: 'Copy this prompt',
  copyAnswer: 'Copy this answer',
  branch: 'Branch from here',
  branchBefore: 'Branch from before this',
  branching: 'Branching…',
  branched: 'This is a new session that begins with what was said up to there.',
  showAll: 'Show all',
  showAllOf: (lines: number) => `Show all ${count(lines, 'line', 'lines')}`,
  suggestion: (by: string) => `${by} suggests`,
  note: { info: 'Note', warn: 'Warning', error: 'Error' },

  // Thoughts.
  thinking: 'Thinking…',
  thought: 'Thought',
  thoughtFor: (seconds: number) => (seconds < 60 ? `Thought for ${seconds} s` : `Thought for ${Math.floor(seconds / 60)} min ${seconds % 60} s`),

  // Files.
  files: 'Files',
  file: 'File',
  openFile: (name: string) => `Open ${name}`,
  downloadFile: (name: string) => `Download ${name}`,
  bytes: (size: number) => (size < 1_000 ? `${size} B` : size < 1_000_000 ? `${Math.round(size / 100) / 10} KB` : `${Math.round(size / 100_000) / 10} MB`),

  // Tools.
  status: {
    pending: 'Waiting',
    running: 'Running',
    completed: 'Done',
    failed: 'Failed',
    denied: 'Denied',
    skipped: 'Skipped',
    cancelled: 'Cancelled',
  } as Record<string, string>,
  kinds: {
    read: 'Read',
    edit: 'Edit',
    delete: 'Delete',
    move: 'Move',
    search: 'Search',
    execute: 'Run',
    think: 'Think',
    fetch: 'Fetch',
  } as Record<string, string>,
  tool: 'Tool',
  input: 'Input',
  output: 'Output',
  nothing: 'Nothing is known about what it was given or what came out.',
  terminal: (id: string) => `Terminal ${id}`,
  location: (path: string, line?: number) => (line === undefined ? path : `${path}, line ${number.format(line)}`),
  locations: 'Files it looked at',

  // Changes.
  changes: (path: string) => `Changes in ${path}`,
  changed: (added: number, removed: number) => `${count(added, 'line', 'lines')} added, ${number.format(removed)} removed`,
  plusMinus: (added: number, removed: number) => `+${number.format(added)} −${number.format(removed)}`,
  added: 'added',
  removed: 'removed',
  unchanged: (lines: number) => `Show ${count(lines, 'unchanged line', 'unchanged lines')}`,
  newFile: 'new file',
  noChange: 'No line changed.',

  // The plan.
  plan: 'Plan',
  planDone: (done: number, all: number) => `${number.format(done)} of ${number.format(all)} done`,
  steps: { pending: 'to do', in_progress: 'under way', running: 'under way', completed: 'done', done: 'done', cancelled: 'dropped', failed: 'failed' } as Record<string, string>,

  // Activity.
  activity: {
    thinking: 'The agent is thinking…',
    executing_tool: 'The agent is using a tool…',
    waiting_for_input: 'The agent is waiting for you',
    idle: 'The agent is working…',
  },
  waitingForOthers: 'The agent is waiting for an answer from someone who can edit this session',
  progress: (current: number, total: number, description: string) => (total > 0 ? `${description ? `${description}: ` : ''}${number.format(current)} of ${number.format(total)}` : description),

  // Ends of runs.
  cancelled: 'Cancelled.',
  endsByCause: {
    not_installed: { what: 'This agent is not installed on the server.', then: 'Ask an administrator to install it, then retry.' },
    not_started: { what: 'This agent could not be started.', then: 'Ask an administrator to check its setup, then retry.' },
    crashed: { what: 'The agent crashed.', then: 'Retry starts it again.' },
    gateway_restarted: { what: 'The server restarted while the agent was working.', then: 'Nothing you see here was lost. Retry sends the prompt again.' },
  } as Record<string, { what: string; then: string }>,
  ends: {
    TASK_FAILED: { what: 'The agent failed.', then: 'Change the prompt or retry.' },
    CONNECTION_LOST: { what: 'The connection to the agent was lost.', then: 'Retry starts it again.' },
    UNSUPPORTED: { what: 'The agent cannot do that.', then: 'Change the prompt or use another agent.' },
    BUSY: { what: 'Too many agents are running.', then: 'Wait a moment, then retry.' },
    RATE_LIMITED: { what: 'The agent was used too often.', then: 'Wait a while, then retry.' },
    AUTH_FAILED: { what: 'The agent is not signed in to its provider.', then: 'Ask an administrator.' },
    FORBIDDEN: { what: 'The agent is not allowed to do that.', then: 'Change the prompt or ask an administrator.' },
    STORAGE_UNAVAILABLE: { what: 'The server could not save it.', then: 'Wait a moment, then retry.' },
  } as Record<string, { what: string; then: string }>,
  end: { what: 'The run failed.', then: 'Change the prompt or retry.' },
  retry: 'Retry',
  details: 'Details',

  // Usage.
  usage: 'Usage of this session',
  tokens: (many: number) => count(many, 'token', 'tokens'),
  tokensShort: (many: number) => `${short.format(many)} tokens`,
  tokensExactly: (input: number, output: number) => `${number.format(input)} in, ${number.format(output)} out`,
  cost: (dollars: number) => `$${dollars < 0.1 ? dollars.toFixed(4) : dollars.toFixed(2)}`,
  contextShort: (percent: number) => `${Math.round(percent)} % left`,
  contextLeft: (percent: number) => `${Math.round(percent)} % of the context left`,
};
