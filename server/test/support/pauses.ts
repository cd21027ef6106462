/**
 * How long this machine kept us from running: a thread that should wake up every 20 ms notes the longest time it was
 * late. A test that promises an answer within some seconds adds this to them, so that it judges us and not a machine
 * that stood still.
 */
import { Worker } from 'node:worker_threads'
import { atEnd } from './at-end.ts'

const everyMs = 20

export function watchPauses(): () => number {
  const shared = new SharedArrayBuffer(8)
  const watcher = new Worker(
    `const { workerData: { shared, everyMs } } = require('node:worker_threads')
     const never = new Int32Array(new SharedArrayBuffer(4))
     const longest = new Float64Array(shared)
     for (let last = performance.now(); ; ) {
       Atomics.wait(never, 0, 0, everyMs)
       const now = performance.now()
       longest[0] = Math.max(longest[0], now - last - everyMs)
       last = now
     }`,
    { eval: true, workerData: { shared, everyMs } },
  )
  watcher.unref()
  atEnd(() => watcher.terminate())
  return () => new Float64Array(shared)[0] ?? 0
}
