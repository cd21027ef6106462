/**
 * Follows docs/deploying.md up to a completed payment, as root, in two ways: with `setup`, and step by step. Each runs the
 * page's own blocks, in order, in one shell, in a copy of an installed Debian that ends with the shell, without a network,
 * so that no port can be taken. A local chain stands in for Base, a certificate of its own for a real one, and
 * `support/systemctl.sh` for systemd.
 *
 *   npm run deploying:test              installs a fresh Debian 12 with debootstrap, by the page's blocks marked `install`;
 *                                       notes the result in docs/proof/deploying.json
 *   npm run deploying:test -- --here    takes this machine for the Debian, and this folder for what was installed: seconds
 *   … -- --keep FOLDER                  keeps the fresh Debian there, and takes it from there next time
 *
 * The last line of output is JSON.
 */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readPages } from './http/docs/blocks.ts'
import { notePassed } from './support/passed.ts'

const source = new URL('../../', import.meta.url).pathname
const { values: choices } = parseArgs({ options: { here: { type: 'boolean' }, keep: { type: 'string' } } })
const folder = choices.keep ?? mkdtempSync(join(tmpdir(), 'farthing-deploying-'))
const root = choices.here ? '/' : join(folder, 'root')
const hosts = ['pay.example.com', 'console.example.com']
const [host = ''] = hosts
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
type Run = (commands: string) => Promise<string>

const page = readPages().find(({ file }) => file === 'docs/deploying.md') ?? assert.fail()
const blocksFor = (purpose: string) =>
  page.blocks.filter(({ words }) => words.includes(purpose)).map(({ text }) => text)

/** What `ops/install` does, from this folder instead of a registry. */
const installedHere = `
rm -rf /opt/farthing /etc/farthing /etc/postgresql/15/main /var/lib/postgresql/15/main /run/postgresql
git clone --quiet --no-hardlinks /src /opt/farthing
mkdir -p /opt/farthing/node_modules /opt/farthing/.ci/node/node_modules
mount --bind /src/node_modules /opt/farthing/node_modules
mount --bind /src/.ci/node/node_modules /opt/farthing/.ci/node/node_modules
ln -sf /opt/farthing/.ci/node/node_modules/.bin/node /usr/local/bin/node
ln -sf /opt/farthing/server/farthing-admin.cjs /usr/local/bin/farthing-admin
(cd /opt/farthing && node page/write.ts)
install -d -o postgres -g postgres /run/postgresql
pg_createcluster 15 main >/dev/null`

/** What a real machine has: a running database, certificates, host names, and the chain. */
const prepare = (network: string) => `${choices.here ? installedHere : ''}
install -m 755 /src/server/test/support/systemctl.sh /usr/local/bin/systemctl
pg_ctlcluster 15 main start
for host in ${hosts.join(' ')}; do
  mkdir -p /etc/letsencrypt/live/$host
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$host -addext subjectAltName=DNS:$host \\
    -keyout /etc/letsencrypt/live/$host/privkey.pem -out /etc/letsencrypt/live/$host/fullchain.pem 2>/dev/null
  cp /etc/letsencrypt/live/$host/fullchain.pem /usr/local/share/ca-certificates/$host.crt
done
update-ca-certificates >/dev/null 2>&1
echo "127.0.0.1 localhost $(uname -n) ${hosts.join(' ')}" > /etc/hosts
node /src/server/test/support/base-chain.ts ${network} ${buyer} > /tmp/chain.log 2>&1 &
for i in $(seq 120); do grep -q 'the chain runs' /tmp/chain.log && break; sleep 0.5; done
cat /tmp/chain.log`

/** The rates of the internet are out of reach. */
const noRates = 'ECB_RATES_URL=\nEXCHANGE_RATES_URL='
/** The same chain twice: two providers that always agree. */
const node = 'http://127.0.0.1:8545'

const scrapedProcesses = `
for i in $(seq 60); do
  up=$(curl -sS 'http://127.0.0.1:9090/api/v1/query?query=sum(up)' || true)
  case "$up" in *'"3"'*) break ;; esac
  sleep 1
done
echo "$up"`

const figures: Record<string, number> = {}
try {
  if (!choices.here && !existsSync(join(root, 'usr/local/bin/farthing-admin'))) {
    makeRoot()
    figures.rootSeconds = seconds()
    await inShell({ isAlone: false, isKept: true }, async (run) => {
      for (const block of blocksFor('install'))
        await run(block.replace('<this repository>', '/srv/farthing.git'))
    })
  }
  figures.installedSeconds = seconds()
  await inShell({ isAlone: true, isKept: false }, deployBySetup)
  figures.setupSeconds = seconds() - figures.installedSeconds
  await inShell({ isAlone: true, isKept: false }, deployStepByStep)
  figures.stepsSeconds = seconds() - figures.installedSeconds - figures.setupSeconds
  say('a payment completed, in both ways')
  figures.setupLines = count(['install', 'setup'])
  figures.stepsLines = count(['install', 'machine'])
  if (!choices.here) notePassed('deploying', figures)
  process.stdout.write(`${JSON.stringify(figures)}\n`)
} finally {
  if (choices.keep === undefined) rmSync(folder, { recursive: true, force: true })
}

function count(purposes: readonly string[]): number {
  return purposes.flatMap((purpose) => blocksFor(purpose).flatMap((block) => block.split('\n'))).length
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
  execFileSync('git', ['clone', '--quiet', '--bare', source, `${root}/srv/farthing.git`])
}

/**
 * Opens a shell in the root, with this repository at /src, and hands out a function that runs commands in it. What it
 * changes is lost unless it is kept. Alone, it has a network of its own, with nothing but loopback. Mounts, processes and
 * network are those of the shell, and end with it.
 */
async function inShell(
  { isAlone, isKept }: { isAlone: boolean; isKept: boolean },
  use: (run: Run) => Promise<void>,
): Promise<void> {
  const layers = mkdtempSync(join(tmpdir(), 'farthing-layers-'))
  const place = isKept ? root : join(layers, 'root')
  const layer = `
    mount -t tmpfs tmpfs ${layers}
    mkdir ${layers}/changes ${layers}/work ${place}
    mount -t overlay overlay -o lowerdir=${root},upperdir=${layers}/changes,workdir=${layers}/work ${place}`
  const enter = `
    ${isKept ? '' : layer}
    mkdir -p ${place}/src
    mount -t proc proc ${place}/proc
    mount --rbind /dev ${place}/dev
    mount --rbind ${source} ${place}/src
    ${isAlone ? 'ip link set lo up' : ''}
    exec chroot ${place} /bin/bash`
  const isolation = ['--mount', '--pid', '--fork', '--kill-child', ...(isAlone ? ['--net'] : [])]
  const shell: Shell = spawn('unshare', [...isolation, '/bin/bash', '-euc', enter], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LANG: 'C.UTF-8',
      DEBIAN_FRONTEND: 'noninteractive',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      npm_config_registry: output('npm', 'config', 'get', 'registry'),
      npm_config_cafile: '/etc/machine-certificates.crt',
      ...(isAlone && { NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt' }),
    },
  })
  const exited = once(shell, 'exit')
  const lines = createInterface({ input: shell.stdout })
  shell.stdin.write('set -euo pipefail\nexec 2>&1\ncd /root\n')
  try {
    await use(async (commands) => {
      say(commands)
      // The commands may leave their last line open.
      shell.stdin.write(
        `cat > /tmp/block.sh <<'END-OF-BLOCK'\n${commands}\nEND-OF-BLOCK\n. /tmp/block.sh </dev/null\nprintf '\\n@done\\n'\n`,
      )
      return await readUntilDone(lines, exited)
    })
  } finally {
    if (shell.exitCode === null && shell.signalCode === null) {
      // The first process of its namespace: everything that was started in it ends with it.
      shell.kill('SIGKILL')
      await exited
    }
    rmSync(layers, { recursive: true, force: true })
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
      () => {
        clearTimeout(timeout)
        reject(new Error(`a command failed:\n${text}`))
      },
      () => {},
    )
  })
}

/** Five lines, the last three of them here, and what comes from outside between them: ether for the settler. */
async function deployBySetup(run: Run): Promise<void> {
  await run(prepare('BASE_SEPOLIA'))
  const [block = assert.fail()] = blocksFor('setup')
  const [setup = '', install = '', doctor = ''] = block.split('\n')
  const nodes = setup.replace(/--nodes \S+/, `--nodes ${node},${node}`).replace('0xWALLET', wallet)
  const printed = await run(nodes)
  const settler = /^ {2}(0x\w{40})$/m.exec(printed)?.[1] ?? assert.fail('setup did not print the settler')
  // Without a certificate, install.sh stops and says how to get one; then it is run again.
  await run(`printf '${noRates}\\n' >> farthing-setup/env; mv /etc/letsencrypt/live/${host} /tmp/certificate`)
  const first = await run(`${install} || echo "@stopped $?"`)
  assert.match(first, /There is no certificate for pay\.example\.com yet.*certbot certonly.*@stopped 1/s)
  const installed = await run(`mv /tmp/certificate /etc/letsencrypt/live/${host}\n${install}`)
  const key = /\bsk_test_\w+/.exec(installed)?.[0] ?? assert.fail('install.sh did not print the key')
  assert.equal(key, /\bsk_test_\w+/.exec(first)?.[0], 'a second run made a second store')
  const before = await run(`${doctor} || true`)
  assert.match(before, /WRONG .*settlers.*Send it ETH on BASE_SEPOLIA/s, 'doctor did not ask for ether')
  await run(fund(settler))
  await run(repeated(doctor))
  const again = await run(
    `echo >> /etc/farthing/env; ${install} > /tmp/again.txt; echo >> farthing-setup/owner.env; ${install} || echo "@stopped $?"`,
  )
  assert.match(again, /another deployment in \/etc\/farthing.*@stopped 1/s)
  await payOnce(run, key)
}

async function deployStepByStep(run: Run): Promise<void> {
  await run(prepare('BASE_MAINNET'))
  const told = { settler: '', store: '', key: '', checkout: '' }
  for (const block of blocksFor('machine')) {
    const commands = block
      .replace(/BASE_MAINNET_RPC_URLS=.*/, `BASE_MAINNET_RPC_URLS=one=${node},two=${node}\n${noRates}`)
      .replace('0xSETTLER', told.settler)
      .replace('0xWALLET', wallet)
      .replace('st_…', told.store)
    const isDoctor = /\bdoctor$/.test(commands)
    const isRehearsal = /\brehearse\b/.test(commands)
    const printed = await run(isDoctor ? repeated(commands) : isRehearsal ? asked(commands) : commands)
    told.settler ||= /^Settler (0x\w{40})$/m.exec(printed)?.[1] ?? ''
    told.store ||= /\bst_\w+/.exec(printed)?.[0] ?? ''
    told.key ||= /\bsk_live_\w+/.exec(printed)?.[0] ?? ''
    told.checkout ||= /\bch_\w+/.exec(printed)?.[0] ?? ''
    if (/settler create/.test(commands)) await run(fund(told.settler))
    if (/member invite/.test(commands)) assert.match(printed, /^https:\/\/console\.example\.com\/enrol#/m)
  }
  assert(told.settler && told.key && told.checkout, 'a command did not print what the next one needs')
  await assertPaid(run, told.checkout, told.key)
  const scraped = await run(scrapedProcesses)
  assert.equal(JSON.parse(scraped.trim().split('\n').at(-1) ?? '').data.result[0].value[1], '3')
  assert.match(await run(`curl -sS https://console.example.com/sign-in`), /Sign in to Farthing/)
  await restore(run, told.checkout, told.key)
}

/** The page's restore, to the last commit that was archived, after refusing to reconcile a deployment that runs. */
async function restore(run: Run, checkout: string, key: string): Promise<void> {
  const refused = await run('farthing-admin reconcile --yes || echo "@refused $?"')
  assert.match(refused, /Nothing was changed: .*connected.*@refused 1/s)
  await run(`sudo -u postgres psql -Atqc 'select pg_switch_wal()' > /dev/null`)
  const [block = assert.fail()] = blocksFor('restore')
  const restored = await run(
    block
      .replace(/--type=time --target='[^']*' --target-action=promote/, '--type=default')
      .replace('farthing-admin reconcile', 'farthing-admin reconcile --yes'),
  )
  assert.match(restored, /Start work and serve now/)
  await assertPaid(run, checkout, key)
}

/** The page's own first payment, on the network that `setup` chose. */
async function payOnce(run: Run, key: string): Promise<void> {
  const [block = assert.fail()] = blocksFor('machine').filter((each) => /\brehearse\b/.test(each))
  const printed = await run(asked(block.replace('BASE_MAINNET', 'BASE_SEPOLIA')))
  await assertPaid(run, /\bch_\w+/.exec(printed)?.[0] ?? assert.fail(printed), key)
}

/** With what the page says to do before, and without a terminal that could ask. */
function asked(block: string): string {
  return `echo ${buyerKey} > buyer.key\n${block.trimEnd()} --yes`
}

async function assertPaid(run: Run, checkout: string, key: string): Promise<void> {
  const url = `https://${host}/api/v1/checkouts/${checkout}`
  // Right after a start the proxy may not have noticed yet that its servers are back.
  const status = await run(`curl -sS --retry 20 --retry-all-errors --fail ${url} -H 'X-API-Key: ${key}'`)
  assert.equal(JSON.parse(status.trim().split('\n').at(-1) ?? '').status, 'COMPLETED')
  const log = await run(`grep -h ${checkout} /var/log/farthing-*.log`)
  for (const step of ['payment claimed', 'payment credited']) assert(log.includes(step), step)
}

function fund(address: string): string {
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'anvil_setBalance',
    params: [address, `0x${(10n ** 18n).toString(16)}`],
  }
  return `curl -sS ${node} -H 'Content-Type: application/json' -d '${JSON.stringify(call)}'; echo`
}

/** Until it succeeds, for a minute: the page says to wait. */
function repeated(commands: string): string {
  return `for i in $(seq 30); do if (${commands}) > /tmp/doctor.txt; then break; fi; sleep 2; done\n${commands}`
}
