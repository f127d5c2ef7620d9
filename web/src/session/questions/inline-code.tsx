// Inline code: renders `backticks` in a line as code.

import { showInvisible, showInvisibleExceptJoiners } from '../../components/visible-text';

export function TextWithCode({ line }: { line: string }) {
  const parts = line.split(/`([^`\n]+)`/);
  return <>{parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{showInvisible(part)}</code> : showInvisibleExceptJoiners(part)))}</>;
}
