import { listenForQuestions } from '../chains/signers/listen.ts'
import { openSpending } from '../chains/signers/spending.ts'
import { ConfigError } from '../config/read.ts'
import type { Config } from '../config/settings.ts'
import type { Log } from '../log.ts'
import { networks } from '../networks.ts'
import { version } from '../version.ts'
import { guardBy, readSigners } from './open-signers.ts'

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
