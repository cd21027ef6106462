/**
 * Follows docs/deploying.md on a fresh Debian 12, up to a completed payment: `.ci/long deploying`, as root. It makes a
 * root with debootstrap from this machine's own package sources, and runs the page's blocks marked `install` and
 * `machine` in it, in order, in one shell; the latter without a network, so that no port can be taken. A local chain
 * stands in for Base, a certificate of its own for a real one, and `support/systemctl.sh` for systemd. Mounts, processes
 * and network are those of the shell, and end with it.
 *
 * With a folder as argument, the root is made there and kept; if nothing but the packages is installed in it, the next
 * run goes on from there. The last line of output is JSON.
 */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readPages } from './http/docs/blocks.ts'

const source = new URL('../../', import.meta.url).pathname
const [kept] = process.argv.slice(2)
const folder = kept ?? mkdtempSync(join(tmpdir(), 'farthing-deploying-'))
const root = join(folder, 'root')
const host = 'pay.example.com'
const wallet = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const buyerKey = generatePrivateKey()
const buyer = privateKeyToAccount(buyerKey).address
const blockTimeoutMs = 30 * 60_000

const startedAt = performance.now()
const seconds = () => Math.round((performance.now() - startedAt) / 1_000)
const say = (text: string) => process.stdout.write(`[${seconds()} s] ${text}\n`)
const output = (program: string, ...args: string[]) =>
  execFileSync(program, args, { encoding: 'utf8' }).trim()

type Shell = ChildProcessByStdio<Writable, Readable, null>

const page = readPages().find(({ file }) => file === 'docs/deploying.md') ?? assert.fail()
const blocksFor = (purpose: string) =>
  page.blocks.filter(({ words }) => words.includes(purpose)).map(({ text }) => text)

/** What a real machine has: a running database, a certificate, a host name, and the chain. */
const preparation = `
pg_ctlcluster 15 main start
mkdir -p /etc/letsencrypt/live/${host}
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=${host} -addext subjectAltName=DNS:${host} \\
  -keyout /etc/letsencrypt/live/${host}/privkey.pem -out /etc/letsencrypt/live/${host}/fullchain.pem 2>/dev/null
cp /etc/letsencrypt/live/${host}/fullchain.pem /usr/local/share/ca-certificates/${host}.crt
update-ca-certificates >/dev/null 2>&1
echo "127.0.0.1 localhost $(uname -n) ${host}" > /etc/hosts
chmod 755 /usr/local/bin/systemctl
node /src/server/test/support/base-chain.ts ${buyer} > /tmp/chain.log 2>&1 &
for i in $(seq 120); do grep -q 'the chain runs' /tmp/chain.log && break; sleep 0.5; done
cat /tmp/chain.log`

/** The same chain twice: two providers that always agree. The rates of the internet are out of reach. */
const nodes = [
  'BASE_MAINNET_RPC_URLS=one=http://127.0.0.1:8545,two=http://127.0.0.1:8545',
  'ECB_RATES_URL=',
  'EXCHANGE_RATES_URL=',
].join('\n')

const scrapedProcesses = `
for i in $(seq 60); do
  up=$(curl -sS 'http://127.0.0.1:9090/api/v1/query?query=sum(up)' || true)
  case "$up" in *'"3"'*) break ;; esac
  sleep 1
done
echo "$up"`

try {
  const figures: Record<string, number> = {}
  if (!existsSync(join(root, 'opt/farthing/page/built.json'))) {
    makeRoot()
    figures.rootSeconds = seconds()
    await inShell(false, async (run) => {
      for (const block of blocksFor('install'))
        await run(block.replace('<this repository>', '/srv/farthing.git'))
    })
  }
  figures.installedSeconds = seconds()
  await inShell(true, deploy)
  say('a payment completed')
  process.stdout.write(`${JSON.stringify({ ...figures, paidSeconds: seconds() })}\n`)
} finally {
  if (kept === undefined) rmSync(folder, { recursive: true, force: true })
}

/** A Debian with nothing but its base, this machine's package sources, and a copy of the last commit to clone. */
function makeRoot(): void {
  mkdirSync(root, { recursive: true })
  const [mirror = assert.fail('apt has no sources')] = output(
    'apt-get',
    'indextargets',
    '--format',
    '$(SITE)',
    'Created-By: Packages',
    'Codename: bookworm',
  ).split('\n')
  say('debootstrap')
  execFileSync('debootstrap', ['--variant=minbase', 'bookworm', root, mirror], { stdio: 'pipe' })
  for (const name of ['sources.list', 'sources.list.d', 'trusted.gpg.d', 'auth.conf.d'])
    if (existsSync(`/etc/apt/${name}`))
      cpSync(`/etc/apt/${name}`, `${root}/etc/apt/${name}`, { recursive: true })
  writeFileSync(`${root}/etc/apt/apt.conf.d/90machine`, `${output('apt-config', 'dump', 'Acquire')}\n`)
  for (const name of ['resolv.conf', 'hosts']) copyFileSync(`/etc/${name}`, `${root}/etc/${name}`)
  copyFileSync('/etc/ssl/certs/ca-certificates.crt', `${root}/etc/machine-certificates.crt`)
  // Packages must not start their services: there is nothing to start them with.
  writeFileSync(`${root}/usr/sbin/policy-rc.d`, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  copyFileSync(join(source, 'server/test/support/systemctl.sh'), `${root}/usr/local/bin/systemctl`)
  execFileSync('git', ['clone', '--quiet', '--bare', source, `${root}/srv/farthing.git`])
}

/**
 * Opens a shell in the root, with this repository at /src, and hands out a function that runs commands in it. Alone, it
 * has a network of its own, with nothing but loopback.
 */
async function inShell(
  isAlone: boolean,
  use: (run: (commands: string) => Promise<string>) => Promise<void>,
): Promise<void> {
  mkdirSync(`${root}/src`, { recursive: true })
  const enter = `
    mount -t proc proc ${root}/proc
    mount --rbind /dev ${root}/dev
    mount --rbind ${source} ${root}/src
    ${isAlone ? 'ip link set lo up' : ''}
    exec chroot ${root} /bin/bash`
  const isolation = ['--mount', '--pid', '--fork', '--kill-child', ...(isAlone ? ['--net'] : [])]
  const shell: Shell = spawn('unshare', [...isolation, '/bin/bash', '-euc', enter], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LANG: 'C.UTF-8',
      DEBIAN_FRONTEND: 'noninteractive',
      npm_config_registry: output('npm', 'config', 'get', 'registry'),
      npm_config_cafile: '/etc/machine-certificates.crt',
      ...(isAlone && { NODE_EXTRA_CA_CERTS: `/etc/letsencrypt/live/${host}/fullchain.pem` }),
    },
  })
  const exited = once(shell, 'exit')
  const lines = createInterface({ input: shell.stdout })
  shell.stdin.write('set -euo pipefail\nexec 2>&1\n')
  let blocks = 0
  try {
    await use(async (commands) => {
      say(commands)
      const file = `/tmp/block-${++blocks}.sh`
      writeFileSync(root + file, commands)
      // The commands may leave their last line open.
      shell.stdin.write(`. ${file} </dev/null\nprintf '\\n@done\\n'\n`)
      return await readUntilDone(lines, exited)
    })
  } finally {
    if (shell.exitCode === null && shell.signalCode === null) {
      // The first process of its namespace: everything that was started in it ends with it.
      shell.kill('SIGKILL')
      await exited
    }
  }
}

function readUntilDone(lines: ReturnType<typeof createInterface>, exited: Promise<unknown>): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(new Error(`not done in time:\n${text}`)), blockTimeoutMs)
    const hear = (line: string) => {
      if (line === '@done') {
        clearTimeout(timeout)
        lines.off('line', hear)
        resolve(text)
      } else {
        text += `${line}\n`
        process.stdout.write(`    ${line}\n`)
      }
    }
    lines.on('line', hear)
    exited.then(
      () => reject(new Error(`a command failed:\n${text}`)),
      () => {},
    )
  })
}

/** From an installed machine to a paid checkout. */
async function deploy(run: (commands: string) => Promise<string>): Promise<void> {
  await run(preparation)
  const told = { settler: '', key: '', checkout: '' }
  for (const block of blocksFor('machine')) {
    const commands = block
      .replace(/BASE_MAINNET_RPC_URLS=.*/, nodes)
      .replace('0xSETTLER', told.settler)
      .replace('0xWALLET', wallet)
      .replace('0xBUYERKEY', buyerKey)
      .replace('sk_live_…', told.key)
      .replace('ch_…', told.checkout)
    const isDoctor = /\bdoctor$/.test(commands)
    const printed = await run(isDoctor ? repeated(commands) : commands)
    told.settler ||= /^Settler (0x\w{40})$/m.exec(printed)?.[1] ?? ''
    told.key ||= /\bsk_live_\w+/.exec(printed)?.[0] ?? ''
    told.checkout ||= /\bch_\w+/.exec(printed)?.[0] ?? ''
    if (/settler create/.test(commands)) await run(fund(told.settler))
  }
  assert(told.settler && told.key && told.checkout, 'a command did not print what the next one needs')
  const status = await run(
    `curl -sS https://${host}/api/v1/checkouts/${told.checkout} -H 'X-API-Key: ${told.key}'`,
  )
  assert.equal(JSON.parse(status).status, 'COMPLETED')
  const log = await run(`grep -h ${told.checkout} /var/log/farthing-*.log`)
  for (const step of ['payment claimed', 'payments sent', 'payment credited'])
    assert(log.includes(step), step)
  const scraped = await run(scrapedProcesses)
  assert.equal(JSON.parse(scraped.trim().split('\n').at(-1) ?? '').data.result[0].value[1], '3')
}

function fund(address: string): string {
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'anvil_setBalance',
    params: [address, `0x${(10n ** 18n).toString(16)}`],
  }
  return `curl -sS http://127.0.0.1:8545 -H 'Content-Type: application/json' -d '${JSON.stringify(call)}'; echo`
}

/** Until it succeeds, for a minute: the page says to wait. */
function repeated(commands: string): string {
  return `for i in $(seq 20); do if (${commands}) > /tmp/doctor.txt; then break; fi; sleep 3; done\n${commands}`
}
