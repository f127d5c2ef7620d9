import { text } from '../text';
export function Waiting() { return <main class="door"><p class="card">{text.common.moment}</p></main>; }
export function Unreachable({ why }: { why: string }) { return <main class="door"><p class="card">{why}</p></main>; }
