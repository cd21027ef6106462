import { posix } from 'node:path'
import { findForeignWrites, findRefundWrites, findStatusChanges } from './tidy-tables.ts'

/**
 * The rules for the source code, as a pure function: `findViolations` returns one sentence per violation. It is separate
 * from its test so that the test can also feed it sources that break the rules. It reads text, not syntax: the tools that
 * know floors bring a parser of their own, and Biome's rule matches an import's text, not the file that it leads to.
 */
export type Source = { /** Relative to server/src. */ readonly path: string; readonly text: string }

/** From top to bottom. A file may import from its own room and from lower floors, not from other rooms on its floor. */
export const floors: readonly (readonly string[])[] = [
  ['main.ts'],
  ['dev'],
  ['commands'],
  ['http', 'worker.ts'],
  ['checkouts'],
  ['links', 'movements', 'refunds'],
  ['payments', 'stores'],
  ['members'],
  ['audit', 'directory', 'events', 'mails', 'rates'],
  ['chains'],
  ['crash.ts'],
  ['context.ts'],
  ['database', 'secrets'],
  ['config'],
  [
    'networks.ts',
    'metrics.ts',
    'log.ts',
    'money.ts',
    'ids.ts',
    'problems.ts',
    'remember.ts',
    'zone.ts',
    'csv.ts',
  ],
  ['version.ts', 'safe-number.ts'],
]

const fileLinesMax = 800
/** All texts of the console in one language: a list, which nobody reads from top to bottom. */
const isLong = /^http\/console\/texts\//
/** Nobody can review markup that does not fit on the screen. Texts have no markup. */
const markupColumnsMax = 120
const hasMarkup = /<\/?[a-z][a-z0-9]*[\s>"$]|html`/
const isMarkup = /^http\/(?!console\/texts\/|page\/languages\/)/
const bannedNames = /(service|manager|helper|util|utils|shared|common|lib|repository|impl)(\.|\/|$)/i
/** A statement lives with the verb that uses it, or in the room's rows.ts if several do. These rooms are not about rows. */
const hasNoTables = /^(http|commands|dev)\//
const statement = /[`'"]\s*(?:select|insert into|update|delete from|with(?: recursive)?)\s+[\w"*(]/g

/** Rooms that must not know which chain a payment is on. */
const chainless = /^(checkouts|links|refunds|http)\//
/** All that they may import from chains/: networks as data, how far each was read, and that a node did not answer. */
const chainsOpen = /^chains\/(families|wallet-links|rows|rpc)\.ts$/
const chainPackages = /from '(viem|@solana|@noble|secp256k1|@x402\/(evm|svm))/
/** Files in http/ that may name the families: the API's definition, which uses these names, and the payment page. */
const namesFamilies = /^http\/(api\/(pay|networks|store|wallets)\.ts$|page\/)/
const chainWords = /\b(evm|solana|svm|eip155|lamports?|wei)\b/i

/**
 * Where code may decide by chain family: the families' own folders, the table in networks.ts, and the four files that
 * choose between families for all other code. `dev` runs a chain of one family.
 */
const decidesByFamily =
  /(^|\/)(evm|svm|sim)\/|^(networks|chains\/families|chains\/wallet-links|payments\/payload|payments\/rails)\.ts$|^dev\//
const familyWords = /\b(EVM|SOLANA|eip155)\b|'SIMULATED'/

/** Questions to nodes. Outside of chains/ nobody counts who said what, so only what enough providers tell leaves it. */
const asksNodes = /\brpc\s*\.\s*(call|batch|callAll|batchAll|askAll)\b/
const takesRpc = /\b(call|batch|callAll|batchAll|askAll)\b[^}=;]*\}\s*(=|:)\s*[\w.]*\brpc\b/i
/** Questions to one provider. */
const asksOne = /\brpc\s*\.\s*(call|batch)\b/
/** Where one provider may be asked, because enough others tell the same before money depends on it, or none does. */
const mayAskOne = new Set([
  'chains/evm/chain.ts', // the head: says only up to where to read
  'chains/evm/accounts.ts', // which block to look into: enough providers must have what is found
  'chains/evm/check.ts', // at the start: whether networks.ts and the chain say the same
  'chains/evm/batcher.ts', // whether the batcher is there: every batch is simulated
  'chains/evm/simulate.ts', // whether a payment would settle: enough are asked before it is sent
  'chains/svm/chain.ts', // at the start, as above
  'chains/svm/create-account.ts', // a blockhash: a false one fails
])

/** Folders of server/test without a counterpart in server/src: support, load, containers, and attacks on payments as a whole. */
const unmirrored = /(^|\/)support(\/|$)|^(load|containers|payments\/adversity|payments\/crash)(\/|$)/

export function findViolations(sources: readonly Source[]): string[] {
  return [...sources.flatMap(findViolationsInFile), ...findImportCycles(sources)]
}

function findViolationsInFile({ path, text }: Source): string[] {
  const violations: string[] = []
  const report = (sentence: string) => violations.push(`${path}: ${sentence}`)
  const code = withoutComments(text)

  for (const target of importsOf(path, code)) {
    if (floorOf(target) === undefined) report(`imports ${target}, which has no floor`)
    else if (!mayImport(path, target)) report(`imports ${target}, which is on the same floor or above`)
  }
  if (chainless.test(path)) {
    const known = importsOf(path, code).find(
      (target) =>
        (target.startsWith('chains/') && !chainsOpen.test(target)) || /\/(evm|svm|sim)\b/.test(target),
    )
    if (known || chainPackages.test(code)) report(`depends on a chain through ${known ?? 'a package'}`)
    if (!namesFamilies.test(path) && chainWords.test(code)) report('mentions a chain family')
  }
  if (!decidesByFamily.test(path) && !namesFamilies.test(path) && familyWords.test(code))
    report('decides by chain family: use the rail or chains/families.ts instead')
  if (!path.startsWith('chains/') && (asksNodes.test(code) || takesRpc.test(code)))
    report('asks nodes by itself: let chains/ count how many tell the same')
  if (path.startsWith('chains/') && asksOne.test(code) && !mayAskOne.has(path))
    report('asks one provider: ask all, or say in server/test/tidy.ts why one is enough')
  if (floorOf(path) === undefined) report('has no floor: assign one in server/test/tidy.ts')
  if (bannedNames.test(path)) report('has a generic name: name it after its contents')
  if (path !== 'config/read.ts' && /process\.env/.test(code))
    report('reads the environment: only config/read.ts may do that')
  if (path !== 'main.ts' && /Date\.now\(|new Date\(\)|performance\.now\(/.test(code))
    report('reads a clock: take the time as an argument instead')
  if (/parseFloat|\bNumber\(|toFixed\(/.test(code))
    report('converts text to a float: amounts are bigint units')
  if (path !== 'safe-number.ts' && /parseInt\([^,]*\.toString\(\)/.test(code))
    report('converts a bigint by itself: use toSafeNumber')
  const statements = code.match(statement)?.length ?? 0
  if (hasNoTables.test(path) && statements > 1)
    report(`contains ${statements} SQL statements: move them to the room that owns the tables`)
  for (const find of [findForeignWrites, findStatusChanges, findRefundWrites])
    for (const sentence of find({ path }, code)) report(sentence)
  const isTooWide = (line: string) => line.length > markupColumnsMax && hasMarkup.test(line)
  const wide = isMarkup.test(path) ? code.split('\n').filter(isTooWide).length : 0
  if (wide > 0) report(`has ${wide} lines of markup over ${markupColumnsMax} characters: name its parts`)
  const lines = text.split('\n').length
  if (lines > fileLinesMax && !isLong.test(path))
    report(`has ${lines} lines, more than ${fileLinesMax}: split it by noun`)
  return violations
}

/** The rules for tests. `path` is relative to server/, `rooms` are the folders of server/src. */
export function findTestViolations(tests: readonly Source[], rooms: ReadonlySet<string>): string[] {
  return tests.flatMap(({ path, text }) => {
    const found: string[] = []
    const folder = posix.relative('test', posix.dirname(path))
    const isMirrored = path.startsWith('src/') || rooms.has(folder) || unmirrored.test(folder)
    if (folder !== '' && !isMirrored) found.push(`${path}: server/src has no folder ${folder}`)
    const lines = text.split('\n').length
    if (lines > fileLinesMax)
      found.push(`${path}: has ${lines} lines, more than ${fileLinesMax}: split it by what it tests`)
    if (opensAfterTest(text))
      found.push(`${path}: opens something after its first test: if that has ended meanwhile, all is closed`)
    return found
  })
}

/** node:test runs a file's `after` as soon as no test is left that it knows of, even if the file is still awaiting. */
function opensAfterTest(text: string): boolean {
  const statements = text.split(/\n(?=[a-z])/)
  const first = statements.findIndex((statement) => /^(?:for .*\n {2})?test\(/.test(statement))
  const isOpening = (statement: string) => /^(?:(?:export )?const .* = )?await (?!test\()/.test(statement)
  const isLoop = (statement: string) =>
    /^for /.test(statement) && /\n {2}(?:const .* = )?await [\s\S]*\n {2}test\(/.test(statement)
  return statements.some(isLoop) || (first !== -1 && statements.slice(first).some(isOpening))
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')
}

/** Local imports, as paths relative to server/src. */
function importsOf(path: string, code: string): string[] {
  return [...code.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target]) =>
    posix.join(posix.dirname(path), target ?? ''),
  )
}

function floorOf(path: string): number | undefined {
  const floor = floors.findIndex((rooms) => rooms.includes(roomOf(path)))
  return floor === -1 ? undefined : floor
}

function roomOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path
}

function mayImport(from: string, to: string): boolean {
  return roomOf(from) === roomOf(to) || (floorOf(from) ?? 0) < (floorOf(to) ?? 0)
}

/** Files that import each other, directly or through others. Type imports count: a reader follows them too. */
function findImportCycles(sources: readonly Source[]): string[] {
  const imports = new Map(sources.map(({ path, text }) => [path, importsOf(path, withoutComments(text))]))
  const reachable = (from: string): Set<string> => {
    const seen = new Set<string>()
    const next = [...(imports.get(from) ?? [])]
    for (let path = next.pop(); path !== undefined; path = next.pop())
      if (!seen.has(path)) next.push(...(seen.add(path) && (imports.get(path) ?? [])))
    return seen
  }
  return [...imports.keys()]
    .filter((path) => reachable(path).has(path))
    .map((path) => `${path}: is part of an import cycle`)
}
