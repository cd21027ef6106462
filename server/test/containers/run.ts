/**
 * Builds the image and runs the services of compose.yaml in a container engine, up to a completed payment and a clean
 * stop: `.ci/long containers`. As root, with Debian's podman, podman-compose, buildah, runc, netavark, aardvark-dns,
 * iptables and debootstrap. The base images are stand-ins (see make-root.sh), the chain is a local one, and the domain is localhost.
 * Everything else is the deployment's: image, networks, roles, passwords, secrets, read-only root, no capabilities, and
 * TLS by the proxy. The last line of output is JSON.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createTestClient, encodeFunctionData, http, parseAbi, publicActions, walletActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { parse } from 'yaml'
import { chainIdOf, testPayer } from '../../src/dev/chain.ts'
import { startLocalChain } from '../../src/dev/local-chain.ts'
import { networks } from '../../src/networks.ts'
import { notePassed } from '../support/passed.ts'

const repository = new URL('../../../', import.meta.url).pathname
const here = import.meta.dirname
/** Of the network `back`. The chain listens there. */
const gateway = '172.30.85.1'
const startSecondsMax = 180
const wallet = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
/** The tenth account of the well-known test mnemonic, which may mint. */
const faucet = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

const folder = mkdtempSync(join(tmpdir(), 'farthing-containers-'))
const source = join(folder, 'farthing')
/** At the gateway, for the containers. */
const chainPort = 8545
const settlerKey = `0x${randomBytes(32).toString('hex')}` as const
const network = networks.find(({ id }) => id === 'LOCAL')
assert(network?.family === 'EVM')

// An engine of its own, that leaves nothing behind. Limits above what a sandbox allows would keep containers from starting.
writeFileSync(
  join(folder, 'containers.conf'),
  '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "file"\n',
)
writeFileSync(
  join(folder, 'storage.conf'),
  `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/storage"\nrunroot = "${folder}/run"\n`,
)
const env: NodeJS.ProcessEnv = {
  ...process.env,
  CONTAINERS_CONF: join(folder, 'containers.conf'),
  CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
  COMPOSE_PROJECT_NAME: 'farthing',
}

const run = (program: string, args: readonly string[], options: { input?: Buffer; cwd?: string } = {}) =>
  execFileSync(program, args, {
    env,
    cwd: source,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  }).trim()
const podman = (...args: readonly string[]) => run('podman', args)
const compose = (...args: readonly string[]) =>
  run('podman-compose', [
    ...['-f', 'compose.yaml', '-f', 'compose.console.yaml', '-f', join(here, 'compose.local.yaml')],
    ...args,
  ])
const containerOf = (service: string) => `farthing_${service}_1`

execFileSync('git', ['clone', '--quiet', repository, source])
execFileSync(join(here, 'make-root.sh'), [join(folder, 'root')], { stdio: ['ignore', 'ignore', 'inherit'] })
const chain = await startLocalChain({
  chainId: chainIdOf(network),
  blockTimeSeconds: 1,
  assets: network.assets,
})
const forwarder = createServer((client) => {
  const node = connect(Number.parseInt(new URL(chain.url).port, 10), '127.0.0.1')
  client.pipe(node).pipe(client)
  for (const [one, other] of [
    [client, node],
    [node, client],
  ] as const)
    one.on('error', () => other.destroy())
})
let figures: Readonly<Record<string, number>>
try {
  importBase('docker.io/library/node:24-bookworm-slim', [])
  importBase('docker.io/library/postgres:17', ['ENTRYPOINT ["/usr/local/bin/postgres-entrypoint"]'])
  importBase('docker.io/library/caddy:2', ['ENV XDG_DATA_HOME=/data'])
  const buildStart = performance.now()
  run('buildah', [
    'bud',
    '--build-arg=COMMIT=test',
    '--isolation=chroot',
    '--network=host',
    '--format=docker',
    '-t',
    'farthing',
    '.',
  ])
  const buildSeconds = secondsSince(buildStart)
  const [imageBytes, baseBytes] = ['farthing', 'docker.io/library/node:24-bookworm-slim'].map((image) =>
    Number.parseInt(podman('image', 'inspect', '--format', '{{.Size}}', image), 10),
  )

  await fund()
  const { DATABASE_OPERATOR_PASSWORD } = writeSettings()
  const url = `postgres://farthing_operator:${DATABASE_OPERATOR_PASSWORD}@postgres:5432/farthing`
  podman('network', 'create', '--subnet', '172.30.85.0/24', 'farthing_back')
  const startedAt = performance.now()
  compose('up', '-d', '--no-build')
  startSigner()
  forwarder.listen(chainPort, gateway)
  await once(forwarder, 'listening')
  await untilReady()
  const startSeconds = secondsSince(startedAt)

  const operator = async (...command: readonly string[]) =>
    await runBeside(
      'podman',
      ['exec', '--env', `DATABASE_URL=${url}`, containerOf('work'), 'farthing-admin', ...command],
      env,
    )
  await operator('settler', 'add', 'LOCAL', privateKeyToAccount(settlerKey).address)
  podman('restart', '--time', '30', containerOf('work'))
  assert.match(await operator('--version'), /^Farthing \d+\.\d+\.\d+ \(test\)$/m)
  const made = await operator('store', 'create', '--test', '--name', 'Container shop', '--evm-wallet', wallet)
  const [apiKey = assert.fail(made)] = /sk_test_\w+/.exec(made) ?? []
  const checkoutUrl = createCheckout(apiKey)
  const paid = await payWith(checkoutUrl)
  assert.match(paid, /paid/i)
  assertConfined('serve')
  assertConfined('work')
  assertConfined('signer')
  await assertConsole(operator, made)
  assertKeyless()

  const stopStart = performance.now()
  podman('stop', '--time', '30', containerOf('work'), containerOf('serve'), containerOf('signer'))
  const stopSeconds = secondsSince(stopStart)
  for (const service of ['work', 'serve', 'signer'])
    assert.equal(podman('inspect', '--format', '{{.State.ExitCode}}', containerOf(service)), '0', service)
  figures = {
    ...{ imageMb: megabytes(imageBytes), baseMb: megabytes(baseBytes), buildSeconds, startSeconds },
    stopSeconds,
  }
} catch (error) {
  for (const service of ['postgres', 'migrate', 'serve', 'signer', 'work', 'proxy'])
    for (const written of spawnSync('podman', ['logs', '--tail', '20', containerOf(service)], { env }).output)
      process.stderr.write(written ?? '')
  throw error
} finally {
  forwarder.close()
  spawnSync('podman', ['rm', '--all', '--force', '--time', '1'], { env })
  spawnSync('podman', ['network', 'prune', '--force'], { env })
  await chain.stop()
  // Each image layer may still be mounted.
  spawnSync('umount', [join(folder, 'storage', 'overlay')])
  rmSync(folder, { recursive: true, force: true })
}
notePassed('containers', figures)
process.stdout.write(`${JSON.stringify(figures)}\n`)

/** Without holding up this process, which forwards the chain's traffic. */
async function runBeside(
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  return (await promisify(execFile)(program, args, { env: environment })).stdout
}

function importBase(name: string, changes: readonly string[]): void {
  const all = ['ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', ...changes]
  const flags = all.map((change) => `--change='${change}'`).join(' ')
  run('bash', ['-euo', 'pipefail', '-c', `tar -C "${folder}/root" -c . | podman import ${flags} - ${name}`])
}

/**
 * The service signer as compose.yaml describes it. Debian's podman-compose 1.0.3 joins a service without a network to the
 * default one as well, which podman refuses; so podman starts this one.
 */
function startSigner(): void {
  const { services } = parse(readFileSync(join(source, 'compose.yaml'), 'utf8'), { merge: true })
  const { environment, network_mode, cap_drop, security_opt, volumes, secrets, command } = services.signer
  podman(
    ...['run', '--detach', '--name', containerOf('signer'), '--network', network_mode, '--read-only'],
    ...cap_drop.flatMap((name: string) => ['--cap-drop', name]),
    ...security_opt.flatMap((option: string) => ['--security-opt', option]),
    ...volumes.flatMap((volume: string) => ['--volume', `farthing_${volume}`]),
    ...secrets.flatMap((name: string) => [
      '--volume',
      `${join(source, name.replace('_', '.'))}:/run/secrets/${name}:ro`,
    ]),
    ...Object.entries({ ...environment, NETWORKS: 'LOCAL' }).flatMap(([name, value]) => [
      '--env',
      `${name}=${value}`,
    ]),
    ...['farthing', command],
  )
}

function writeSettings(): { readonly DATABASE_OPERATOR_PASSWORD: string } {
  const secret = () => randomBytes(16).toString('hex')
  const settings = {
    DOMAIN: 'localhost',
    CONSOLE_DOMAIN: 'console.localhost',
    POSTGRES_PASSWORD: secret(),
    DATABASE_OWNER_PASSWORD: secret(),
    DATABASE_SERVE_PASSWORD: secret(),
    DATABASE_WORK_PASSWORD: secret(),
    DATABASE_CONSOLE_PASSWORD: secret(),
    DATABASE_OPERATOR_PASSWORD: secret(),
    BASE_MAINNET_RPC_URLS: 'unused',
    LOCAL_RPC_URLS: `http://${gateway}:${chainPort}`,
  }
  const text = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(join(source, '.env'), text.join(''))
  const keys = join(source, 'settler.keys')
  writeFileSync(keys, `${settlerKey}\n`)
  const secretsKeys = join(source, 'secrets.keys')
  writeFileSync(secretsKeys, `one ${randomBytes(32).toString('base64')}\n`)
  for (const file of [keys, secretsKeys]) {
    chownSync(file, 1000, 1000)
    chmodSync(file, 0o400)
  }
  return settings
}

/** Gives the settler money for gas, and the payer tokens. */
async function fund(): Promise<void> {
  const client = createTestClient({ mode: 'anvil', transport: http(chain.url) })
    .extend(publicActions)
    .extend(walletActions)
  await client.setBalance({ address: privateKeyToAccount(settlerKey).address, value: 10n ** 20n })
  const data = encodeFunctionData({
    abi: parseAbi(['function mint(address to, uint256 value) returns (bool)']),
    args: [testPayer.address, 1_000_000_000n],
  })
  for (const asset of network?.assets ?? [])
    await client.request({
      method: 'eth_sendTransaction' as never,
      params: [{ from: faucet, to: asset.address, data }] as never,
    })
}

function curl(path: string, ...args: readonly string[]) {
  const { status, stdout } = spawnSync(
    'curl',
    ['--silent', '--insecure', '--max-time', '5', ...args, `https://localhost${path}`],
    { encoding: 'utf8' },
  )
  return { isAnswered: status === 0, body: stdout }
}

async function untilReady(): Promise<void> {
  const deadline = performance.now() + startSecondsMax * 1_000
  for (;;) {
    const { isAnswered, body } = curl('/openapi.json')
    if (isAnswered && body.startsWith('{')) return
    assert(performance.now() < deadline, `no answer after ${startSecondsMax} s: ${body}`)
    await wait(250)
  }
}

function createCheckout(apiKey: string): string {
  const order = JSON.stringify({ priceAmount: '2.50', priceCurrency: 'USD', orderId: 'container-1' })
  const { body } = curl(
    '/api/v1/checkouts',
    ...['--header', `x-api-key: ${apiKey}`, '--header', 'content-type: application/json', '--data', order],
  )
  const { checkoutUrl } = JSON.parse(body)
  assert.equal(typeof checkoutUrl, 'string', body)
  return checkoutUrl
}

/** Pays through the proxy with the command line, which trusts the proxy's own authority. */
async function payWith(checkoutUrl: string): Promise<string> {
  const authority = join(folder, 'authority.crt')
  podman('cp', `${containerOf('proxy')}:/data/caddy/pki/authorities/local/root.crt`, authority)
  return await runBeside(
    process.execPath,
    [join(repository, 'cli/src/main.ts'), 'pay', checkoutUrl, '--yes', '--max', '3'],
    {
      ...process.env,
      NODE_EXTRA_CA_CERTS: authority,
      FARTHING_PRIVATE_KEY: testPayer.key,
      XDG_STATE_HOME: folder,
    },
  )
}

/** On its own host the console answers, on the API's it does not. */
async function assertConsole(
  operator: (...command: readonly string[]) => Promise<string>,
  made: string,
): Promise<void> {
  const [storeId = assert.fail(made)] = /st_\w+/.exec(made) ?? []
  const invited = await operator('member', 'invite', storeId, '--name', 'Olga')
  assert.match(invited, /^https:\/\/console\.localhost\/enrol#/)
  const page = spawnSync(
    'curl',
    [
      ...['--silent', '--insecure', '--max-time', '5', '--resolve', 'console.localhost:443:127.0.0.1'],
      'https://console.localhost/sign-in',
    ],
    { encoding: 'utf8' },
  )
  assert.match(page.stdout, /Sign in to Farthing/)
  assert(!curl('/sign-in').body.includes('Sign in to Farthing'))
}

/** `work` can ask for signatures, and has neither the keys nor a way to change what signer notes; signer has no network. */
function assertKeyless(): void {
  const inside = (service: string, script: string) =>
    spawnSync('podman', ['exec', containerOf(service), 'sh', '-c', script], { env, encoding: 'utf8' })
  assert.equal(inside('work', 'test -S /var/lib/signer/socket').status, 0)
  assert.notEqual(inside('work', 'cat /run/secrets/settler_keys').status, 0)
  assert.notEqual(inside('work', 'touch /var/lib/signer/socket.spent').status, 0)
  assert.equal(inside('signer', 'cat /run/secrets/settler_keys').stdout.trim(), settlerKey)
  assert.equal(inside('signer', 'tail -n +3 /proc/net/dev | grep -v lo:').stdout, '')
}

function assertConfined(service: string): void {
  const inside = (...command: readonly string[]) =>
    spawnSync('podman', ['exec', containerOf(service), ...command], { env, encoding: 'utf8' })
  assert.match(inside('cat', '/proc/1/status').stdout, /^CapEff:\t0+$/m, service)
  assert.match(inside('cat', '/proc/1/status').stdout, /^NoNewPrivs:\t1$/m, service)
  assert.match(inside('cat', '/proc/1/status').stdout, /^Uid:\t1000\b/m, service)
  assert.notEqual(inside('touch', '/farthing/written').status, 0, service)
}

function secondsSince(start: number): number {
  return Math.round((performance.now() - start) / 100) / 10
}

function megabytes(bytes = 0): number {
  return Math.round(bytes / 1e6)
}
