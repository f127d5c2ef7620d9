export function Workbench() { return null; }
