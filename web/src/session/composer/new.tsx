export function NewSession() { return null; }
