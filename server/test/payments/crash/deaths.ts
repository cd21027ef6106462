import type { CrashPoint } from '../../../src/crash.ts'

type Mortal = {
  stop(command: 'serve' | 'work'): Promise<unknown>
  /** Starts a process with the point armed, and returns once it has crashed there. */
  crash(command: 'serve' | 'work', point: CrashPoint): Promise<unknown>
  start(command: 'serve' | 'work'): Promise<unknown>
}

/** How often a process crashed at each point. */
export const reached = new Map<CrashPoint, number>()

/**
 * Drives a flow while a process crashes at each of the points, in this order. It is started with the next point armed,
 * kills itself there with kill -9, and is started again; the last start has no point armed.
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
