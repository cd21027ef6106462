import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, matchesGlob } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { parse } from 'yaml'
import { listSettings, readConfig } from '../src/config.ts'
import { atEnd } from './support/at-end.ts'
import { freshDatabase } from './support/database.ts'

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
}

test('the image that the Containerfile describes answers requests and contains no tests, browser or chain', async () => {
  const steps = (await read('Containerfile'))
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const)
  const argumentOf = (name: string) => steps.find(([step]) => step === name)?.[1] ?? assert.fail(`no ${name}`)
  assert.match(argumentOf('FROM'), /\bnode:24-/)
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
  const [install = ''] = argumentOf('RUN').split(' && ')
  execFileSync('sh', ['-c', install], {
    cwd: image,
    stdio: 'pipe',
    env: { ...process.env, npm_config_prefer_offline: 'true' },
  })
  for (const name of ['@foundry-rs/anvil', 'playwright-core', '@biomejs/biome'])
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
      PATH: process.env.PATH ?? '',
      ...given,
      HOST: '127.0.0.1',
      OPERATIONS_HOST: '127.0.0.1',
      DATABASE_URL: url,
      BASE_URL: 'https://farthing.example',
      PORT: '0',
      OPERATIONS_PORT: '0',
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
  assert.match(await page.text(), /<script type="module" src="\/pay\/assets\/page\.\w+\.js"/)
})

test('the compose file gives each process only settings that exist, and the settler keys only to work', async () => {
  const values = {
    DOMAIN: 'pay.example',
    POSTGRES_PASSWORD: 'secret',
    BASE_MAINNET_RPC_URLS: 'https://a.example,https://b.example',
  }
  const text = (await read('compose.yaml')).replaceAll(
    /\$\{(\w+)(:\?[^}]*)?\}/g,
    (_, name) => values[name as keyof typeof values] ?? assert.fail(`the test has no value for ${name}`),
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
    assert.equal(config.settlerKeysFile, command === 'work' ? '/run/secrets/settler_keys' : '')
    assert.deepEqual(service.secrets ?? [], command === 'work' ? ['settler_keys'] : [])
  }
  // Only the proxy publishes ports, and the process with the keys is not on the proxy's network.
  const published = Object.entries(services).filter(([, { ports }]) => ports)
  assert.deepEqual(
    published.map(([name, { ports }]) => [name, ports]),
    [['proxy', ['80:80', '443:443']]],
  )
  assert.deepEqual(services.work?.networks, ['back'])
  assert.deepEqual(services.postgres?.networks, ['back'])
})

/** The build context: the files of the repository except those that .dockerignore excludes. */
async function filesInContext(): Promise<string[]> {
  const rules = (await read('.dockerignore'))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  return tracked.filter((file) => {
    let isIgnored = false
    for (const rule of rules) {
      const pattern = rule.replace('!', '')
      // A rule that matches a folder matches everything in it. The last match decides.
      const parts = file.split('/')
      const fits = (path: string) => pattern === '*' || matchesGlob(path, pattern)
      if (parts.some((_, i) => fits(parts.slice(0, i + 1).join('/')))) isIgnored = !rule.startsWith('!')
    }
    return !isIgnored
  })
}
