import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from '../at-end.ts'
import { writeCircleToken } from './circle.ts'

/** Every chain that this test file opens from now on has Circle's own token. */
export async function useCircleToken(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-circle-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'token.json')
  await writeCircleToken(file)
  process.env.TOKEN_ARTIFACT = file
}
