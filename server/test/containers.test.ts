import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, matchesGlob } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { parse } from 'yaml'
import { readConfig, readSignerChoices } from '../src/config/read.ts'
import { listSettings } from '../src/config/settings.ts'
import { atEnd } from './support/at-end.ts'
import { freshDatabase } from './support/database.ts'
import { secretsKeyFile } from './support/secrets-key.ts'

/**
 * These tests need no container engine. They carry out the Containerfile by hand: COPY and RUN in an empty folder,
 * ENTRYPOINT and CMD as a process. They don't cover the base image or the engine itself.
 */
const root = new URL('../../', import.meta.url).pathname
const read = (name: string) => readFile(join(root, name), 'utf8')

type Service = {
  readonly image: string
  readonly command?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly secrets?: readonly string[]
  readonly networks: readonly string[]
  readonly network_mode?: string
  readonly volumes?: readonly string[]
  readonly profiles?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}

test('the image that the Containerfile describes answers requests and contains no tests, browser, chain or bundler', async () => {
  const steps = (await read('Containerfile'))
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const)
  const argumentOf = (name: string) => steps.find(([step]) => step === name)?.[1] ?? assert.fail(`no ${name}`)
  assert.match(argumentOf('ARG'), /^NODE_IMAGE=\S+\bnode:24-/)
  assert.match(argumentOf('FROM'), /^\$\{NODE_IMAGE\}$/)
  assert.equal(argumentOf('USER'), 'node')
  assert.equal(argumentOf('COPY'), '. .')

  const image = await mkdtemp(join(tmpdir(), 'farthing-image-'))
  atEnd(() => rm(image, { recursive: true, force: true }))
  const files = await filesInContext()
  assert(!files.some((file) => /\.test\.ts$|^server\/test\/|^\.env|\.keys?$|^\.dev\//.test(file)))
  for (const file of files) {
    await mkdir(join(image, dirname(file)), { recursive: true })
    await copyFile(join(root, file), join(image, file))
  }
  const [clean = '', ...commands] = argumentOf('RUN').split(' && ').toReversed()
  // It would empty the cache of this machine.
  assert.match(clean, /^npm cache clean/)
  execFileSync('sh', ['-c', commands.toReversed().join(' && ')], {
    cwd: image,
    stdio: 'pipe',
    env: { ...process.env, npm_config_prefer_offline: 'true' },
  })
  for (const name of ['@foundry-rs/anvil', 'playwright-core', '@biomejs/biome', 'esbuild', '@esbuild/*'])
    assert.equal(globSync(`node_modules/${name}/package.json`, { cwd: image }).length, 0, name)

  const { url } = await freshDatabase()
  const [program = '', ...args] = [...JSON.parse(argumentOf('ENTRYPOINT')), ...JSON.parse(argumentOf('CMD'))]
  const given = Object.fromEntries(
    argumentOf('ENV')
      .split(' ')
      .map((pair) => pair.split('=')),
  )
  const child = spawn(program, args, {
    cwd: image,
    env: {
      // Where npm links the command; in an image, a link in the PATH leads to the same file.
      PATH: `${join(image, 'node_modules/.bin')}:${process.env.PATH}`,
      ...given,
      HOST: '127.0.0.1',
      OPERATIONS_HOST: '127.0.0.1',
      DATABASE_URL: url,
      BASE_URL: 'https://farthing.example',
      PORT: '0',
      OPERATIONS_PORT: '0',
      SECRETS_KEY_FILE: secretsKeyFile,
    },
  })
  atEnd(() => child.kill('SIGKILL'))
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const { address } = await new Promise<{ address: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += line
      if (line.includes('"listening"')) resolve(JSON.parse(line))
    })
    child.once('exit', (code) => reject(new Error(`exited with ${code}: ${output}`)))
  })
  assert.equal((await fetch(`${address}/readyz`)).status, 200)
  assert.equal((await fetch(`${address}/docs/api`)).status, 200)
  const page = await fetch(`${address}/pay/ch_none`, { headers: { accept: 'text/html' } })
  assert.match(await page.text(), /<script type="module" src="\/pay\/assets\/page\.\w+\.js\?cell=00"/)
})

test('files with private keys are ignored by git and never sent to an image', async () => {
  for (const name of ['settler.keys', 'server/settler.keys', '.env'])
    assert.equal(execFileSync('git', ['check-ignore', name], { cwd: root, encoding: 'utf8' }).trim(), name)
  const names = ['settler.keys', 'server/settler.keys', 'docs/.env', '.env', 'server/src/main.ts']
  assert.deepEqual(names.filter(await openRules()), ['server/src/main.ts'])
})

test('the compose file gives each process only settings that exist, and the settler keys only to signer, which has no network', async () => {
  const values = {
    DOMAIN: 'pay.example',
    POSTGRES_PASSWORD: 'superword',
    DATABASE_OWNER_PASSWORD: 'ownersecret',
    DATABASE_SERVE_PASSWORD: 'servesecret',
    DATABASE_WORK_PASSWORD: 'worksecret',
    DATABASE_CONSOLE_PASSWORD: 'consolesecret',
    DATABASE_OPERATOR_PASSWORD: 'operatorsecret',
    BASE_MAINNET_RPC_URLS: 'https://a.example,https://b.example',
  }
  const text = (await read('compose.yaml')).replaceAll(
    /\$\{(\w+)(?::\?[^}]*|:-([^}]*))?\}/g,
    (_, name, fallback) =>
      values[name as keyof typeof values] ?? fallback ?? assert.fail(`the test has no value for ${name}`),
  )
  const { services } = parse(text, { merge: true }) as { services: Record<string, Service> }
  const names = listSettings().map(({ name }) => name)
  for (const command of ['serve', 'work']) {
    const { environment = {}, ...service } = services[command] ?? assert.fail(`no ${command}`)
    assert.equal(service.command, command)
    for (const name of Object.keys(environment)) assert(names.includes(name), `${name} is not a setting`)
    const config = readConfig(environment)
    assert.equal(config.baseUrl, 'https://pay.example')
    assert.deepEqual(config.networks, ['BASE_MAINNET'])
    assert((config.nodes.BASE_MAINNET ?? []).length >= 2)
    assert.equal(config.settlerKeysFile, '')
    assert.equal(config.signerSocket, command === 'work' ? '/var/lib/signer/socket' : '')
    assert.equal(config.secretsKeyFile, '/run/secrets/secrets_keys')
    assert.deepEqual(service.secrets, ['secrets_keys'])
    assert.equal(new URL(config.databaseUrl).username, `farthing_${command}`)
    assert.equal(config.migrateOnStart, false)
    assert.equal(service.depends_on?.migrate?.condition, 'service_completed_successfully')
  }
  const { environment: signers = {}, ...signer } = services.signer ?? assert.fail('no signer')
  for (const name of Object.keys(signers)) assert(names.includes(name), `${name} is not a setting`)
  const { settlerKeysFile, signerSocket, signerSocketMode, networks } = readSignerChoices(signers)
  assert.deepEqual([settlerKeysFile, signerSocketMode], ['/run/secrets/settler_keys', 0o600])
  assert.deepEqual(
    [signer.command, signer.secrets, signer.network_mode],
    ['signer', ['settler_keys'], 'none'],
  )
  assert.equal(signer.networks, undefined)
  assert.deepEqual(networks, readConfig(services.work?.environment).networks)
  // They share the socket and nothing else, and only signer may write there.
  assert.equal(signerSocket, readConfig(services.work?.environment).signerSocket)
  assert.deepEqual(
    [services.work?.volumes, signer.volumes],
    [['signer:/var/lib/signer:ro'], ['signer:/var/lib/signer']],
  )
  assert.match(await read('Containerfile'), /^RUN install -d -m 0700 -o node -g node \/var\/lib\/signer$/m)
  // The operator's commands have a role of their own, and nothing starts them.
  const { environment: commands = {}, profiles } = services.operator ?? assert.fail('no operator')
  assert.equal(new URL(readConfig(commands).databaseUrl).username, 'farthing_operator')
  assert.deepEqual(profiles, ['operator'])
  // The owner of the tables migrates and does nothing else, and nothing connects as the superuser.
  const { environment: owners = {}, ...migrate } = services.migrate ?? assert.fail('no migrate')
  assert.deepEqual([migrate.command, migrate.secrets ?? [], migrate.networks], ['migrate', [], ['back']])
  assert.equal(new URL(readConfig(owners).databaseUrl).username, 'farthing_owner')
  assert.deepEqual(
    Object.keys(services).filter((name) => JSON.stringify(services[name]).includes(values.POSTGRES_PASSWORD)),
    ['postgres'],
  )
  for (const file of ['rights/roles.sql', 'rights/owner.sql', 'passwords.sh'])
    assert(services.postgres?.volumes?.some((volume) => volume.startsWith(`./server/${file}:`)))
  // Only the proxy publishes ports, and the process with the keys is not on the proxy's network.
  const published = Object.entries(services).filter(([, { ports }]) => ports)
  assert.deepEqual(
    published.map(([name, { ports }]) => [name, ports]),
    [['proxy', ['80:80', '443:443']]],
  )
  assert.deepEqual(services.work?.networks, ['back'])
  assert.deepEqual(services.postgres?.networks, ['back'])
})

test('with compose.console.yaml the console has a host of its own, and only the proxy sees both', async () => {
  type Added = {
    readonly environment?: Readonly<Record<string, string>>
    readonly volumes?: readonly string[]
  }
  const { services } = parse(await read('compose.console.yaml')) as { services: Record<string, Added> }
  const [serve, work] = [services.serve?.environment ?? {}, services.work?.environment ?? {}]
  assert.deepEqual([work, services.operator?.environment], [{ CONSOLE_URL: serve.CONSOLE_URL }, work])
  assert.match(serve.CONSOLE_DATABASE_URL ?? '', /^postgres:\/\/farthing_console:/)
  const names = listSettings().map(({ name }) => name)
  for (const name of Object.keys(serve)) assert(names.includes(name), `${name} is not a setting`)
  const base = { DATABASE_URL: 'postgres://none', BASE_URL: 'https://pay.example' }
  const consoleUrl = serve.CONSOLE_URL?.replace(`\${CONSOLE_DOMAIN}`, 'console.example') ?? ''
  const config = readConfig({ ...base, CONSOLE_URL: consoleUrl })
  assert.equal(config.consoleUrl, 'https://console.example')
  const [volume = ''] = services.proxy?.volumes ?? []
  const caddyfile = await read(volume.split(':')[0] ?? '')
  const routes = [...caddyfile.matchAll(/^\{\$(\w+)\} \{\n\treverse_proxy serve:(\d+)\n\}$/gm)]
  assert.deepEqual(
    routes.map(([, host, port]) => [host, port]),
    [
      ['DOMAIN', `${config.port}`],
      ['CONSOLE_DOMAIN', `${config.consolePort}`],
    ],
  )
  assert.deepEqual(Object.keys(services.proxy?.environment ?? {}), ['DOMAIN', 'CONSOLE_DOMAIN'])
})

/** The build context: the files of the repository except those that .dockerignore excludes. */
async function filesInContext(): Promise<string[]> {
  const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  return tracked.filter(await openRules())
}

/** Whether a file is sent to the builder, by .dockerignore. */
async function openRules(): Promise<(file: string) => boolean> {
  const rules = (await read('.dockerignore'))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  return (file) => {
    let isIgnored = false
    for (const rule of rules) {
      const pattern = rule.replace('!', '')
      // A rule that matches a folder matches everything in it. The last match decides.
      const parts = file.split('/')
      const fits = (path: string) => pattern === '*' || matchesGlob(path, pattern)
      if (parts.some((_, i) => fits(parts.slice(0, i + 1).join('/')))) isIgnored = !rule.startsWith('!')
    }
    return !isIgnored
  }
}
