export function Invite() { return null; }
