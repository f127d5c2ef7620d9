export function Login({ why }: { why: string | undefined }) { return <p>{why}</p>; }
