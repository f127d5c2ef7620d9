// Language: the lexical rules of a programming language, as far as colours need them.

/** A string or comment with its delimiters. */
export interface Delimited {
  readonly open: string;
  readonly close: string;
  /** Whether it may go on in the next line. */
  readonly isMultiline?: boolean;
  /** Whether a backslash escapes the next character. */
  readonly hasEscapes?: boolean;
}

export interface Language {
  readonly lineComments: readonly string[];
  /** Line comments that begin a word only: `#` in a shell is also part of `$#` and of names. */
  readonly commentsNeedSpace?: boolean;
  readonly blockComments: readonly Delimited[];
  readonly strings: readonly Delimited[];
  readonly keywords: ReadonlySet<string>;
  /** Words such as `true` and `null`. */
  readonly literals: ReadonlySet<string>;
  readonly types: ReadonlySet<string>;
  /** Names that begin with a capital letter are types. */
  readonly hasCapitalTypes?: boolean;
  readonly isCaseless?: boolean;
  /** A name, from where it is matched. Sticky. */
  readonly name: RegExp;
  /** What else has a colour, such as `@decorator` or `$variable`, from where it is matched. Sticky. */
  readonly special?: { readonly pattern: RegExp; readonly kind: 'variable' | 'key' | 'keyword' };
  /** A name before this character at the beginning of a line is a key, as in YAML and TOML. */
  readonly keyBefore?: RegExp;
  /** A name or string before a colon is a key, as in JSON and CSS. */
  readonly hasColonKeys?: boolean;
  /** Whole lines by their first character, as in a patch. */
  readonly isPatch?: boolean;
  /** `<tags>` with attributes; everything between them is plain. */
  readonly isMarkup?: boolean;
}

const words = (list: string): ReadonlySet<string> => new Set(list.split(' ').filter((word) => word !== ''));

const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const DASHED_NAME = /[\p{L}_][\p{L}\p{N}_-]*/uy;
const C_COMMENT: Delimited = { open: '/*', close: '*/', isMultiline: true };
const DOUBLE: Delimited = { open: '"', close: '"', hasEscapes: true };
const SINGLE: Delimited = { open: "'", close: "'", hasEscapes: true };
const TRIPLE_DOUBLE: Delimited = { open: '"""', close: '"""', isMultiline: true, hasEscapes: true };
const TRIPLE_SINGLE: Delimited = { open: "'''", close: "'''", isMultiline: true, hasEscapes: true };

function language(rules: Partial<Omit<Language, 'keywords' | 'literals' | 'types'>> & { keywords?: string; literals?: string; types?: string }): Language {
  const { keywords = '', literals = 'true false null', types = '', ...rest } = rules;
  return { lineComments: ['//'], blockComments: [C_COMMENT], strings: [DOUBLE, SINGLE], name: NAME, ...rest, keywords: words(keywords), literals: words(literals), types: words(types) };
}

const C_WORDS = 'if else for while do switch case default break continue return goto sizeof static const extern struct union enum typedef volatile register inline restrict';
const C_TYPES = 'int char float double void short long unsigned signed bool size_t ssize_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t wchar_t';
const JS_WORDS = 'await async break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static super switch this throw try typeof var void while with yield';
const TS_WORDS = `${JS_WORDS} abstract as asserts declare enum implements infer interface is keyof module namespace override private protected public readonly satisfies type unique`;

const javascript = language({
  keywords: JS_WORDS,
  literals: 'true false null undefined NaN Infinity',
  strings: [DOUBLE, SINGLE, { open: '`', close: '`', isMultiline: true, hasEscapes: true }],
  hasCapitalTypes: true,
  special: { pattern: /@[\p{L}_$][\p{L}\p{N}_$.]*/uy, kind: 'key' },
});

const LANGUAGES = {
  javascript,
  typescript: { ...javascript, keywords: words(TS_WORDS), types: words('any bigint boolean never number object string symbol unknown void') },
  json: language({ lineComments: ['//'], hasColonKeys: true, strings: [DOUBLE], name: NAME }),
  rust: language({
    keywords: 'as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type union unsafe use where while',
    literals: 'true false',
    types: 'bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize',
    hasCapitalTypes: true,
    strings: [{ open: 'r#"', close: '"#', isMultiline: true }, { ...DOUBLE, isMultiline: true }],
    special: { pattern: /#!?\[[^\]]*\]|'[\p{L}_][\p{L}\p{N}_]*(?!')|'(?:\\.|[^'\\])'|[a-z_]+!(?=[([{])/uy, kind: 'key' },
  }),
  go: language({
    keywords: 'break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var',
    literals: 'true false nil iota',
    types: 'any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr',
    hasCapitalTypes: true,
    strings: [DOUBLE, SINGLE, { open: '`', close: '`', isMultiline: true }],
  }),
  python: language({
    lineComments: ['#'],
    blockComments: [],
    keywords: 'and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield',
    literals: 'True False None',
    types: 'bool bytes dict float frozenset int list object set str tuple',
    hasCapitalTypes: true,
    strings: [TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
    special: { pattern: /@[\p{L}_][\p{L}\p{N}_.]*/uy, kind: 'key' },
  }),
  java: language({
    keywords: 'abstract assert break case catch class const continue default do else enum extends final finally for goto if implements import instanceof interface native new package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var void volatile while yield',
    types: 'boolean byte char double float int long short',
    hasCapitalTypes: true,
    strings: [TRIPLE_DOUBLE, DOUBLE, SINGLE],
    special: { pattern: /@[\p{L}_][\p{L}\p{N}_.]*/uy, kind: 'key' },
  }),
  kotlin: language({
    keywords: 'abstract as break by catch class companion constructor continue data do else enum final finally for fun get if import in infix init inline inner interface internal is lateinit object open operator out override package private protected public return sealed set super suspend this throw try typealias val var vararg when where while',
    hasCapitalTypes: true,
    strings: [TRIPLE_DOUBLE, DOUBLE, SINGLE],
    special: { pattern: /@[\p{L}_][\p{L}\p{N}_.]*/uy, kind: 'key' },
  }),
  c: language({ keywords: C_WORDS, literals: 'true false NULL nullptr', types: C_TYPES, special: { pattern: /#\s*[a-z]+(?:\s*<[^>]*>)?/uy, kind: 'key' } }),
  cpp: language({
    keywords: `${C_WORDS} alignas auto catch class concept consteval constexpr constinit co_await co_return co_yield decltype delete explicit export final friend mutable namespace new noexcept operator override private protected public requires static_assert template this throw try typename using virtual`,
    literals: 'true false NULL nullptr',
    types: C_TYPES,
    hasCapitalTypes: true,
    special: { pattern: /#\s*[a-z]+(?:\s*<[^>]*>)?/uy, kind: 'key' },
  }),
  csharp: language({
    keywords: 'abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params partial private protected public readonly record ref required return sealed set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using value var virtual volatile when where while with yield',
    types: 'bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void',
    hasCapitalTypes: true,
    strings: [TRIPLE_DOUBLE, { open: '@"', close: '"', isMultiline: true }, DOUBLE, SINGLE],
  }),
  swift: language({
    keywords: 'actor any as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate final for func get guard if import in indirect init inout internal is lazy let mutating nonisolated open operator override private protocol public repeat rethrows return self Self set some static struct subscript super switch throw throws try typealias unowned var weak where while',
    literals: 'true false nil',
    hasCapitalTypes: true,
    strings: [TRIPLE_DOUBLE, DOUBLE],
    special: { pattern: /[@#][\p{L}_][\p{L}\p{N}_]*/uy, kind: 'key' },
  }),
  ruby: language({
    lineComments: ['#'],
    blockComments: [{ open: '=begin', close: '=end', isMultiline: true }],
    keywords: 'alias and begin break case class def defined do else elsif end ensure for if in module next not or redo rescue retry return self super then undef unless until when while yield require require_relative attr_accessor attr_reader private protected public',
    literals: 'true false nil',
    hasCapitalTypes: true,
    special: { pattern: /:[\p{L}_][\p{L}\p{N}_?!]*|@{1,2}[\p{L}_][\p{L}\p{N}_]*|\$[\p{L}_][\p{L}\p{N}_]*/uy, kind: 'variable' },
  }),
  php: language({
    lineComments: ['//', '#'],
    keywords: 'abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while xor yield',
    types: 'bool float int iterable mixed never object string void self parent',
    hasCapitalTypes: true,
    special: { pattern: /\$[\p{L}_][\p{L}\p{N}_]*|<\?php|\?>/uy, kind: 'variable' },
  }),
  bash: language({
    lineComments: ['#'],
    commentsNeedSpace: true,
    blockComments: [],
    keywords: 'if then else elif fi for while until do done case esac in function select time return exit export local readonly declare set unset shift trap source alias',
    literals: 'true false',
    types: '',
    strings: [{ ...DOUBLE, isMultiline: true }, { open: "'", close: "'", isMultiline: true }],
    name: DASHED_NAME,
    special: { pattern: /\$(?:\{[^}]*\}|[\p{L}_][\p{L}\p{N}_]*|[0-9@#?*!$-])/uy, kind: 'variable' },
  }),
  sql: language({
    lineComments: ['--'],
    isCaseless: true,
    keywords: 'add all alter and any as asc begin between by case cast check column commit conflict constraint create cross database default delete desc distinct do drop else end except exists explain foreign from full function grant group having if in index inner insert intersect into is join key left like limit not null nulls offset on or order outer over partition primary references returning revoke right rollback row rows select set table then transaction trigger truncate union unique update using values view when where window with',
    literals: 'true false null',
    types: 'bigint blob boolean bytea char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar',
  }),
  yaml: language({ lineComments: ['#'], commentsNeedSpace: true, blockComments: [], literals: 'true false null yes no on off', name: DASHED_NAME, keyBefore: /^(\s*(?:- +)*)([^\s#:'"[{][^#:]*?|"[^"]*"|'[^']*')(?=\s*:(?:\s|$))/u, special: { pattern: /[&*!][\p{L}_][\p{L}\p{N}_-]*/uy, kind: 'variable' } }),
  toml: language({ lineComments: ['#'], blockComments: [], literals: 'true false', strings: [TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, { open: "'", close: "'" }], name: DASHED_NAME, keyBefore: /^(\s*)(\[{1,2}[^\]]*\]{1,2}|[\p{L}\p{N}_."'-]+(?=\s*=))/u }),
  ini: language({ lineComments: ['#', ';'], blockComments: [], name: DASHED_NAME, keyBefore: /^(\s*)(\[[^\]]*\]|[^=\s#;][^=#;]*?(?=\s*=))/u }),
  css: language({ lineComments: [], keywords: 'important', literals: '', hasColonKeys: true, name: /-{0,2}[\p{L}_][\p{L}\p{N}_-]*/uy, special: { pattern: /@[\p{L}-]+|--[\p{L}\p{N}_-]+|#[\p{L}\p{N}_-]+|\.[\p{L}_][\p{L}\p{N}_-]*/uy, kind: 'variable' } }),
  markup: language({ lineComments: [], blockComments: [{ open: '<!--', close: '-->', isMultiline: true }], isMarkup: true, literals: '', name: DASHED_NAME }),
  dockerfile: language({ lineComments: ['#'], blockComments: [], isCaseless: true, keywords: 'add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal user volume workdir', special: { pattern: /\$(?:\{[^}]*\}|[\p{L}_][\p{L}\p{N}_]*)|--[a-z-]+/uy, kind: 'variable' } }),
  makefile: language({ lineComments: ['#'], blockComments: [], keywords: 'ifeq ifneq ifdef ifndef else endif include define endef export override', literals: '', special: { pattern: /\$(?:\([^)]*\)|\{[^}]*\}|[@<^*?%])/uy, kind: 'variable' }, keyBefore: /^()([^\s#:=][^#:=]*?)(?=\s*:(?!=))/u }),
  lua: language({ lineComments: ['--'], blockComments: [{ open: '--[[', close: ']]', isMultiline: true }], keywords: 'and break do else elseif end for function goto if in local not or repeat return then until while', literals: 'true false nil', strings: [{ open: '[[', close: ']]', isMultiline: true }, DOUBLE, SINGLE] }),
  elixir: language({ lineComments: ['#'], blockComments: [], keywords: 'after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with', literals: 'true false nil', hasCapitalTypes: true, strings: [TRIPLE_DOUBLE, DOUBLE, SINGLE], special: { pattern: /:[\p{L}_][\p{L}\p{N}_?!]*|@[\p{L}_][\p{L}\p{N}_]*/uy, kind: 'variable' } }),
  haskell: language({ lineComments: ['--'], blockComments: [{ open: '{-', close: '-}', isMultiline: true }], keywords: 'case class data default deriving do else forall foreign if import in infix infixl infixr instance let module newtype of then type where', literals: 'True False', hasCapitalTypes: true, strings: [DOUBLE] }),
  graphql: language({ lineComments: ['#'], blockComments: [], keywords: 'directive enum extend fragment implements input interface mutation on query scalar schema subscription type union', hasCapitalTypes: true, strings: [TRIPLE_DOUBLE, DOUBLE], special: { pattern: /\$[\p{L}_][\p{L}\p{N}_]*|@[\p{L}_][\p{L}\p{N}_]*/uy, kind: 'variable' } }),
  terraform: language({ lineComments: ['#', '//'], keywords: 'data for if in locals module output provider resource terraform variable', strings: [DOUBLE], name: DASHED_NAME, keyBefore: /^(\s*)([\p{L}_][\p{L}\p{N}_-]*)(?=\s*=)/u }),
  diff: language({ isPatch: true }),
} satisfies Record<string, Language>;

/** Other names of the languages: file extensions and what agents write after a fence. */
const ALIASES: Readonly<Record<string, keyof typeof LANGUAGES>> = {
  js: 'javascript', mjs: 'javascript', cjs: 'javascript', jsx: 'javascript', node: 'javascript',
  ts: 'typescript', mts: 'typescript', cts: 'typescript', tsx: 'typescript',
  json5: 'json', jsonc: 'json', ndjson: 'json', jsonl: 'json', webmanifest: 'json',
  rs: 'rust', golang: 'go', py: 'python', pyi: 'python', python3: 'python',
  kt: 'kotlin', kts: 'kotlin', scala: 'kotlin', groovy: 'java', gradle: 'java', dart: 'java',
  h: 'c', cc: 'cpp', cxx: 'cpp', hpp: 'cpp', hh: 'cpp', 'c++': 'cpp', cs: 'csharp', 'c#': 'csharp',
  rb: 'ruby', rake: 'ruby', gemfile: 'ruby', sh: 'bash', shell: 'bash', zsh: 'bash', fish: 'bash', console: 'bash', shellsession: 'bash',
  psql: 'sql', postgresql: 'sql', mysql: 'sql', sqlite: 'sql',
  yml: 'yaml', conf: 'ini', cfg: 'ini', properties: 'ini', env: 'ini', service: 'ini', lock: 'toml',
  scss: 'css', sass: 'css', less: 'css',
  html: 'markup', htm: 'markup', xml: 'markup', svg: 'markup', vue: 'markup', svelte: 'markup', xhtml: 'markup',
  patch: 'diff', docker: 'dockerfile', containerfile: 'dockerfile', make: 'makefile', mk: 'makefile',
  ex: 'elixir', exs: 'elixir', hs: 'haskell', gql: 'graphql', tf: 'terraform', hcl: 'terraform',
};

/** The rules for a language by its name, or undefined if it has none. */
export function languageOf(name: string): Language | undefined {
  const key = name.toLowerCase();
  const found = Object.hasOwn(LANGUAGES, key) ? (key as keyof typeof LANGUAGES) : Object.hasOwn(ALIASES, key) ? ALIASES[key] : undefined;
  return found === undefined ? undefined : LANGUAGES[found];
}
