import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** All load generators together. */
export const connections = 64

const script = new URL('create.lua', import.meta.url).pathname
const execute = promisify(execFile)

export type Load = {
  requests: number
  microseconds: number
  refused: number
  broken: number
  p50Ms: number
  p99Ms: number
}

/** Creates checkouts at full load for `length` seconds. Every answer must be a 201. */
export async function createMany(
  serving: readonly { readonly address: string }[],
  key: string,
  run: string,
  length: number,
): Promise<Load> {
  const loads = await Promise.all(
    serving.map(async ({ address }, i): Promise<Load> => {
      const args = [
        '-t1',
        `-c${connections / serving.length}`,
        `-d${length}s`,
        // A stall of a shared disk can be longer than wrk's default of two seconds.
        '--timeout',
        '10s',
        '-s',
        script,
        address,
        '--',
        key,
        `${run}-${i}`,
      ]
      const { stdout } = await execute('wrk', args)
      return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
    }),
  )
  const total = loads.reduce((sum, load) => ({
    requests: sum.requests + load.requests,
    microseconds: Math.max(sum.microseconds, load.microseconds),
    refused: sum.refused + load.refused,
    broken: sum.broken + load.broken,
    p50Ms: Math.max(sum.p50Ms, load.p50Ms),
    p99Ms: Math.max(sum.p99Ms, load.p99Ms),
  }))
  assert.equal(total.refused, 0, 'an answer was not 2xx')
  assert.equal(total.broken, 0, 'a connection broke')
  return total
}
