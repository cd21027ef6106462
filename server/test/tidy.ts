import { posix } from 'node:path'
import { findForeignWrites, findStatusChanges } from './tidy-tables.ts'

/**
 * The rules of the house, as a pure function over the sources: `findMess` returns one sentence for each broken rule.
 * Kept apart from its test so that the test can also show it broken sources.
 */
export type Source = { /** Relative to server/src. */ readonly path: string; readonly text: string }

/** From the roof to the ground. A file may import what stands below it, never what stands beside or above. */
export const floors: readonly (readonly string[])[] = [
  ['main.ts'],
  ['dev'],
  ['commands'],
  ['http', 'worker.ts'],
  ['checkouts'],
  ['payments', 'stores'],
  ['events', 'rates'],
  ['chains'],
  ['crash.ts'],
  ['context.ts'],
  ['database'],
  ['config.ts'],
  ['networks.ts', 'metrics.ts', 'log.ts', 'money.ts', 'ids.ts', 'problems.ts', 'remember.ts'],
]

const fileLinesMax = 400
const bannedNames = /(service|manager|helper|util|utils|shared|common|lib|repository|impl)(\.|\/|$)/i
/** Files that are SQL by name; any other may hold the one statement it is named for. */
const sqlFiles = /(^|\/)([\w-]*rows|db|migrate|schedule)\.ts$/
const statement = /[`'"]\s*(?:select|insert into|update|delete from|with(?: recursive)?)\s+[\w"*(]/g

/** What is owed, and the doors, do not know which chain a payment is on. */
const chainless = /^(checkouts|http)\//
/** Of the chains' room they may know networks as data, how far they were read, and that a node did not answer. */
const chainsOpen = /^chains\/(families|wallet-links|rows|rpc)\.ts$/
const chainPackages = /from '(viem|@solana|@noble|secp256k1|@x402\/(evm|svm))/
/** The interface's own names of the two families stand where it is written down, and where wallets are spoken to. */
const namesFamilies = /^http\/((store-api|schemas)\.ts$|page\/)/
const chainWords = /\b(evm|solana|svm|eip155|lamports?|wei)\b/i

/**
 * Where code may decide by the family of a chain: the families' own rooms, the table, and the four files that choose
 * between families for everybody else. `dev` runs one chain of a family. Stores and the API name families because the
 * interface does.
 */
const decidesByFamily =
  /(^|\/)(evm|svm)\/|^(networks|chains\/families|chains\/wallet-links|payments\/payload|payments\/rails)\.ts$|^dev\//
const familyWords = /\b(EVM|SOLANA|eip155)\b/

/** Folders of server/test without a counterpart in server/src: support, load, and attacks on all of payments at once. */
const unmirrored = /(^|\/)support(\/|$)|^(load|payments\/adversity|payments\/crash)(\/|$)/

export function findMess(sources: readonly Source[]): string[] {
  return [...sources.flatMap(findMessInFile), ...findCircles(sources)]
}

function findMessInFile({ path, text }: Source): string[] {
  const mess: string[] = []
  const say = (sentence: string) => mess.push(`${path}: ${sentence}`)
  const code = withoutComments(text)

  for (const target of importsOf(path, code)) {
    if (floorOf(target) === undefined) say(`imports ${target}, which stands on no floor`)
    else if (!mayImport(path, target)) say(`imports ${target}, which is beside or above it`)
  }
  if (chainless.test(path)) {
    const known = importsOf(path, code).find(
      (target) => (target.startsWith('chains/') && !chainsOpen.test(target)) || /\/(evm|svm)\b/.test(target),
    )
    if (known || chainPackages.test(code)) say(`knows a chain by ${known ?? 'a package'}`)
    if (!namesFamilies.test(path) && chainWords.test(code)) say('speaks of a family of chains')
  }
  if (!decidesByFamily.test(path) && !namesFamilies.test(path) && familyWords.test(code))
    say('decides by the family of a chain: ask the rail, or chains/families.ts')
  if (floorOf(path) === undefined) say('stands on no floor: give it one in server/test/tidy.ts')
  if (bannedNames.test(path)) say('has a name that says nothing about what is inside')
  if (path !== 'config.ts' && /process\.env/.test(code)) say('reads the environment: only config.ts may')
  if (path !== 'main.ts' && /Date\.now\(|new Date\(\)|performance\.now\(/.test(code))
    say('reads a clock: take the time as an argument')
  if (/parseFloat|\bNumber\(|toFixed\(/.test(code)) say('makes a float out of text: money is bigint units')
  const statements = code.match(statement)?.length ?? 0
  if (!sqlFiles.test(path) && statements > 1) say(`holds ${statements} SQL statements: move them to rows.ts`)
  for (const sentence of [...findForeignWrites({ path }, code), ...findStatusChanges({ path }, code)])
    say(sentence)
  const lines = text.split('\n').length
  if (lines > fileLinesMax) say(`has ${lines} lines: which second noun is it hiding?`)
  return mess
}

/** The same for tests. `path` is relative to server, `rooms` are the folders of server/src. */
export function findUntidyTests(tests: readonly Source[], rooms: ReadonlySet<string>): string[] {
  return tests.flatMap(({ path, text }) => {
    const found: string[] = []
    const folder = posix.relative('test', posix.dirname(path))
    const isMirrored = path.startsWith('src/') || rooms.has(folder) || unmirrored.test(folder)
    if (folder !== '' && !isMirrored) found.push(`${path}: server/src has no folder ${folder}`)
    const lines = text.split('\n').length
    if (lines > fileLinesMax) found.push(`${path}: has ${lines} lines: split it by what it tests`)
    return found
  })
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

/** Files that import each other, directly or through others. Types count: a reader follows them too. */
function findCircles(sources: readonly Source[]): string[] {
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
    .map((path) => `${path}: imports itself through other files`)
}
