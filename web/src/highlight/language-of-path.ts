// Language of a path: which language a file is written in, by its name.

const BY_NAME: Readonly<Record<string, string>> = { dockerfile: 'dockerfile', containerfile: 'dockerfile', makefile: 'makefile', gemfile: 'ruby', rakefile: 'ruby', '.bashrc': 'bash', '.env': 'env', 'cargo.lock': 'toml', 'package-lock.json': 'json' };

/** The name of the language; empty if the path does not tell. */
export function languageOfPath(path: string): string {
  const name = path.split('/').at(-1)?.toLowerCase() ?? '';
  if (Object.hasOwn(BY_NAME, name)) return BY_NAME[name] ?? '';
  return name.includes('.') ? (name.split('.').at(-1) ?? '') : '';
}
