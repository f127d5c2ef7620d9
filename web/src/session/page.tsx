export function SessionPage({ id }: { id: string }) { return <p>{id}</p>; }
