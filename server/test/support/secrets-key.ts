import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKeyFile } from '../../src/secrets/key-file.ts'
import { atEnd } from './at-end.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-secrets-'))
atEnd(() => rm(folder, { recursive: true, force: true }))

/** A key for the webhook secrets of every deployment in this test file. */
export const secretsKeyFile = join(folder, 'secrets.keys')
await createKeyFile(secretsKeyFile)
