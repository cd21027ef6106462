import type { CrashPoint } from '../../../src/crash.ts'

type Mortal = {
  stop(command: 'serve' | 'work'): Promise<unknown>
  /** Starts it with the point armed, and returns when it has died there. */
  crash(command: 'serve' | 'work', point: CrashPoint): Promise<unknown>
  start(command: 'serve' | 'work'): Promise<unknown>
}

/** How often a process died at each point. */
export const reached = new Map<CrashPoint, number>()

/**
 * Drives a flow while a process dies at each of the points, in this order: it is started with the next point armed, dies
 * there by its own kill -9, and is started again, until the last start, which is left alone.
 */
export async function throughDeaths<Result>(
  deployment: Mortal,
  command: 'serve' | 'work',
  points: readonly CrashPoint[],
  drive: () => Promise<Result>,
): Promise<Result> {
  await deployment.stop(command)
  const die = async () => {
    for (const point of points) {
      await deployment.crash(command, point)
      reached.set(point, (reached.get(point) ?? 0) + 1)
    }
    await deployment.start(command)
  }
  const [result] = await Promise.all([drive(), die()])
  return result
}
