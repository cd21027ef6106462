import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readConfig } from '../../config/read.ts'
import type { Options } from '../usage.ts'
import { collectAnswers } from './answers.ts'
import { drawFiles } from './files.ts'

const wallet = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const given = {
  host: 'pay.shop.example',
  nodes: 'http://127.0.0.1:1,http://127.0.0.1:2',
  wallet,
}

const hasAddress = async (host: string) => host.endsWith('.shop.example')
const collect = (options: Options) => collectAnswers(options, { ask: null, hasAddress })

const folder = mkdtempSync(join(tmpdir(), 'farthing-setup-'))
after(() => rmSync(folder, { recursive: true }))

test('each wrong answer is refused at once, with what is wrong about it', async () => {
  for (const [wrong, says] of [
    [{ host: 'https://pay.example.com' }, /--host .*not a host name/],
    [{ host: 'PAY.example.com' }, /--host .*lower case/],
    [{ host: 'nowhere.invalid' }, /--host nowhere\.invalid: No address is known/],
    [{ 'console-host': given.host }, /--console-host .*of its own/],
    [{ network: 'BASE' }, /--network BASE: It is one of BASE_MAINNET, BASE_SEPOLIA/],
    [{ network: 'LOCAL' }, /--network LOCAL/],
    [{ network: 'BASE_MAINNET', nodes: 'http://127.0.0.1:1' }, /--nodes .*at least 2 providers/],
    [{ network: 'BASE_MAINNET', nodes: 'a=http://127.0.0.1:1,a=http://127.0.0.1:2' }, /at least 2 providers/],
    [{ network: 'BASE_MAINNET', nodes: 'http://1.2.3.4,http://1.2.3.5' }, /--nodes .*https/],
    [{ nodes: 'http://127.0.0.1:1 http://127.0.0.1:2' }, /--nodes .*space/],
    [{ nodes: 'ftp://127.0.0.1' }, /--nodes/],
    [{ wallet: `${wallet.slice(0, -1)}7` }, /--wallet/],
    [{ wallet: 'mine' }, /--wallet/],
    [{ mail: 'mail.example' }, /--mail .*smtps/],
    [{ mail: 'smtps://mail.example', 'mail-from': 'me' }, /--mail-from/],
  ] as const)
    await assert.rejects(collect({ ...given, ...wrong }), says)
  await assert.rejects(collect({ ...given, wallet: undefined }), /--wallet is missing/)
})

test('at a terminal, setup asks for missing answers, and asks again if an answer is wrong', async () => {
  const typed = ['', '', 'nonsense', '', given.nodes, '', wallet, '']
  const asked: string[] = []
  const ask = async (question: string) => {
    asked.push(question)
    return typed.shift() ?? assert.fail(question)
  }
  const answers = await collectAnswers({ host: given.host }, { ask, hasAddress })
  assert.equal(answers.network.id, 'BASE_SEPOLIA')
  assert.equal(answers.name, 'My shop')
  assert.equal(answers.nodes, 'provider1=http://127.0.0.1:1,provider2=http://127.0.0.1:2')
  assert.deepEqual(typed, [])
  assert(asked.some((question) => /Press Enter to try again/.test(question)))
})

test('the settings that setup writes are settings that serve and work accept', async () => {
  const mail = { mail: 'smtps://u:p@mail.example:465', 'mail-from': 'shop@mail.example' }
  const files = drawFiles(await collect({ ...given, 'console-host': 'console.shop.example', ...mail }))
  const text = (name: string) => files.find((file) => file.name === name)?.text ?? assert.fail(name)
  for (const role of ['owner', 'serve', 'work', 'operator']) {
    const config = readConfig({ ...parseEnv(text('env')), ...parseEnv(text(`${role}.env`)) })
    assert.equal(config.baseUrl, 'https://pay.shop.example')
    assert.equal(config.consoleUrl, 'https://console.shop.example')
    assert.match(config.databaseUrl, new RegExp(`^postgres://farthing_${role}:[0-9a-f]{48}@127`))
  }
  assert.match(text('nginx/farthing'), /server_name pay\.shop\.example;/)
  assert.doesNotMatch(files.map(({ text: all }) => all).join(), /\b(pay|console)\.example\.com/)
  for (const { name, isSecret } of files)
    assert.equal(isSecret, /env$|\.sql$/.test(name), `${name} is readable by all users, or by none`)
})

test('whatever the store is called, install.sh passes it on as it is and runs nothing of it', async () => {
  for (const name of [
    `Bob's "Café"`,
    '$(touch ran)',
    '`touch ran`',
    "'; touch ran; '",
    '--test',
    'a\\b $HOME !',
  ]) {
    const script =
      drawFiles(await collect({ ...given, name })).find((file) => file.name === 'install.sh')?.text ?? ''
    execFileSync('sh', ['-n'], { input: script })
    const line = script.split('\n').find((each) => each.includes('store create')) ?? assert.fail()
    writeFileSync(join(folder, 'farthing-admin'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 })
    execFileSync('sh', ['-c', line], { cwd: folder, env: { PATH: `${folder}:${process.env.PATH}` } })
    const words = execFileSync('cat', ['store.txt'], { cwd: folder, encoding: 'utf8' }).trim().split('\n')
    assert.deepEqual(words, ['store', 'create', `--name=${name}`, '--test', '--evm-wallet', wallet])
    assert.throws(() => execFileSync('ls', ['ran'], { cwd: folder, stdio: 'pipe' }))
    rmSync(join(folder, 'store.txt'))
  }
})
