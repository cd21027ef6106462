/**
 * Follows the README's quick start as a newcomer would: `npm run quickstart:test`. It clones the last commit, runs the
 * commands in the README and those that `dev` prints, opens the page that `dev` prints in a browser and pays with one
 * click. It fails if a command fails, if a payment does not complete, or if the first payment takes more than a minute
 * from `npm run dev`. The last line of output is JSON.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { chromium } from 'playwright-core'
import { freePort } from './support/free-port.ts'

const secondsMax = 60
const root = new URL('../../', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'farthing-quickstart-'))
// If we are root, PostgreSQL runs as another user, who must be able to enter the folder.
chmodSync(folder, 0o755)
const clone = join(folder, 'farthing')
execFileSync('git', ['clone', '--quiet', root, clone])
const [first = [], ...terminals] = readBlocks(readFileSync(join(clone, 'README.md'), 'utf8'))
assert.equal(first.at(-1), 'npm run dev')
assert(terminals.length > 0)
const env = { ...process.env, PORT: String(await freePort()) }
const shell = (lines: readonly string[]) =>
  execFileSync('bash', ['-euo', 'pipefail', '-c', lines.join('\n')], { cwd: clone, env, encoding: 'utf8' })

shell(first.slice(0, -1))
const startedAt = performance.now()
const secondsSince = () => Math.round((performance.now() - startedAt) / 100) / 10
const dev = spawn('bash', ['-c', `exec ${first.at(-1)}`], {
  cwd: clone,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
  detached: true,
})
let figures: object
try {
  const screen = await readScreen()
  const secondsToScreen = secondsSince()
  const [checkoutUrl = ''] = /http\S+\/pay\/ch_\w+/.exec(screen) ?? []
  await payByClick(checkoutUrl)
  await assertCompleted(checkoutUrl)
  const secondsToCompleted = secondsSince()
  for (const lines of [...terminals, readCommands(screen)]) process.stdout.write(shell(lines))
  // The demo store has a history of its own, with orders of four digits.
  const paid = (await listCheckouts()).filter(({ orderId }) => /^(demo|order-\d|\d)$/.test(orderId))
  assert(paid.length >= 5, `${paid.length} orders`)
  assert.deepEqual([...new Set(paid.map(({ status }) => status))], ['COMPLETED'])
  assert(secondsToCompleted <= secondsMax, `${secondsToCompleted} s to the first payment`)
  figures = { secondsToScreen, secondsToCompleted, secondsToEnd: secondsSince(), paid: paid.length }
} finally {
  if (dev.pid && dev.exitCode === null && dev.signalCode === null) {
    // To the whole process group, as a terminal does, because npm alone would not pass the signal on.
    process.kill(-dev.pid, 'SIGINT')
    await once(dev, 'close')
  }
  rmSync(folder, { recursive: true, force: true })
}
process.stdout.write(`${JSON.stringify(figures)}\n`)

/** The commands of each shell block under "Quick start", with continued lines joined. */
function readBlocks(readme: string): string[][] {
  const [, section = ''] = /^## Quick start\n([\s\S]*?)^## /m.exec(readme) ?? []
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) =>
    block.replaceAll('\\\n', ' ').trim().split('\n'),
  )
}

/** The commands that `dev` prints for a second terminal, in the order printed. */
function readCommands(screen: string): string[] {
  const [, section = ''] = /In a second terminal([\s\S]*?)\n {2}API /.exec(screen) ?? []
  const lines = section.replaceAll('\\\n', ' ').match(/^ {4}.*/gm) ?? []
  assert(lines.length >= 5, 'dev prints no commands')
  return lines.map((line) => line.trim())
}

function readScreen(): Promise<string> {
  let screen = ''
  return new Promise((resolve, reject) => {
    dev.stdout.on('data', (chunk) => {
      process.stdout.write(chunk)
      screen += chunk
      if (screen.includes('Ctrl-C stops everything')) resolve(screen)
    })
    dev.once('exit', () => reject(new Error('dev exited before it printed its screen.')))
  })
}

async function payByClick(checkoutUrl: string): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  const page = await browser.newPage()
  await page.goto(checkoutUrl)
  await page.getByRole('button', { name: 'Pay with Test wallet' }).click()
  await page.getByRole('heading', { name: 'Payment received' }).waitFor({ timeout: secondsMax * 1_000 })
  await browser.close()
}

async function listCheckouts(): Promise<{ orderId: string; status: string; checkoutUrl: string }[]> {
  const { FARTHING_URL, FARTHING_API_KEY = '' } = parseEnv(readFileSync(join(clone, '.dev/env'), 'utf8'))
  const headers = { 'x-api-key': FARTHING_API_KEY }
  const answer = await fetch(`${FARTHING_URL}/api/v1/checkouts`, { headers })
  return ((await answer.json()) as { data: { orderId: string; status: string; checkoutUrl: string }[] }).data
}

async function assertCompleted(checkoutUrl: string): Promise<void> {
  const checkout = (await listCheckouts()).find((each) => each.checkoutUrl === checkoutUrl)
  assert.equal(checkout?.status, 'COMPLETED')
}
