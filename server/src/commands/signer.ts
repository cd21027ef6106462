import { readFile } from 'node:fs/promises'
import { connectToSigner } from '../chains/signers/connect.ts'
import { listenForQuestions } from '../chains/signers/listen.ts'
import type { Guard } from '../chains/signers/signing.ts'
import { openSpending } from '../chains/signers/spending.ts'
import { ConfigError } from '../config/read.ts'
import type { Config } from '../config/settings.ts'
import type { Context } from '../context.ts'
import type { Log } from '../log.ts'
import { networks } from '../networks.ts'
import type { AnySigner } from '../payments/rail.ts'
import { openRemote, readSigner } from '../payments/rails.ts'
import { listSettlers } from '../payments/settlers/rows.ts'
import { version } from '../version.ts'

/**
 * The process that holds the settlers' keys and does nothing but sign what the policy allows. It has no database, asks no
 * node and listens on nothing but its socket, so there is little to attack. It keeps the sum that it has signed today next
 * to the socket, so that a restart does not refill the day's limits.
 */
export async function signer(config: Config, log: Log, now: () => Date): Promise<void> {
  const { signerSocket: path, settlerKeysFile } = config
  if (path === '' || settlerKeysFile === '')
    throw new ConfigError('signer needs SIGNER_SOCKET, where it listens, and SETTLER_KEYS_FILE.')
  const holders = await readSigners(settlerKeysFile, guardBy(config, openSpending(now, `${path}.spent`)))
  const enabled = networks.filter(({ id }) => config.networks.includes(id))
  const stop = await listenForQuestions({
    path,
    mode: config.signerSocketMode,
    holders,
    networks: enabled,
    log,
  })
  log.info({ ...version, socket: path, settlers: holders.map(({ address }) => address) }, 'signing')
  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name))
  })
  await stop()
  log.info({ signal }, 'stopped')
}

/**
 * The signers of `work`: the keys in SETTLER_KEYS_FILE, or, with SIGNER_SOCKET, one for each settler in the database. It
 * does not matter whether the process at the socket runs yet: lanes wait for it.
 */
export async function openLaneSigners(ctx: Context): Promise<readonly AnySigner[]> {
  const { config, db } = ctx
  if (config.signerSocket === '')
    return await readSigners(config.settlerKeysFile, guardBy(config, openSpending(ctx.now, null)))
  refuseBoth(config)
  const client = connectToSigner(config.signerSocket)
  const settlers = (await listSettlers(db, null)).filter(({ state }) => state !== 'retired')
  return [...new Set(settlers.map(({ address }) => address))].map((address) => openRemote(client, address))
}

/** All signers, for commands: from the file, or from the process at the socket. */
export async function openAllSigners({ config }: Context): Promise<readonly AnySigner[]> {
  if (config.signerSocket === '') return await readSigners(config.settlerKeysFile)
  refuseBoth(config)
  const client = connectToSigner(config.signerSocket)
  return (await client.list()).map((address) => openRemote(client, address))
}

/** The settlers' keys, one per line. Empty lines and # comments are skipped. */
export async function readSigners(file: string, guard?: Guard) {
  if (file === '') return []
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => line.trim())
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'))
  return keys.map((key) => {
    const signer = readSigner(key, guard)
    if (signer) return signer
    throw new ConfigError(
      `SETTLER_KEYS_FILE (${file}) must hold one key per line: 0x and 64 hexadecimal digits, or 64 numbers in brackets.`,
    )
  })
}

function guardBy(config: Config, spending: Guard['spending']): Guard {
  return { limits: config, spending }
}

/** A process that asks for signatures must not be able to read the keys as well. */
function refuseBoth({ settlerKeysFile }: Config): void {
  if (settlerKeysFile !== '')
    throw new ConfigError(
      'SETTLER_KEYS_FILE must be empty where SIGNER_SOCKET is set: only signer reads the keys.',
    )
}
