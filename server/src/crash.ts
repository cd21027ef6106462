import type { Context } from './context.ts'

/** Every place where a test can kill a process. `server/test/payments/crash` drives a payment through each of them. */
export const crashPoints = [
  // serve
  'create-before',
  'create-after',
  'verify-before',
  'claim-before',
  'claim-after',
  'wait-before',
  'wait-after',
  'answer-before',
  // serve: a refund
  'prepare-before-commit',
  'prepare-after-commit',
  'sign-before-commit',
  'sign-after-commit',
  // serve: this cell becomes the owner of a wallet or settler
  'hold-before',
  'hold-after',
  'hold-before-commit',
  'hold-after-commit',
  // work: a lane
  'simulate-before',
  'simulate-after',
  'reject-before-commit',
  'reject-after-commit',
  'send-before-commit',
  'send-after-commit',
  'broadcast-before-note',
  'broadcast-after-note',
  'replace-before-commit',
  'replace-after-commit',
  'fill-before-commit',
  'fill-after-commit',
  // work: the follower, at blocks that hold transfers
  'block-before-commit',
  'block-after-commit',
  'orphan-before-commit',
  'orphan-after-commit',
  'finality-before-commit',
  'finality-after-commit',
  'adopt-before-commit',
  // work: everything else
  'bury-before-commit',
  'bury-after-commit',
  'sequence-before-commit',
  'sequence-after-commit',
  'book-before-commit',
  'book-before-done',
  'expire-before-commit',
  'expire-after-commit',
  'decide-before-commit',
  'decide-after-commit',
  'watch-before-commit',
  'watch-after-commit',
  'retention-before-commit',
  'retention-after-commit',
  // reconcile
  'reconcile-before-epoch',
] as const

export type CrashPoint = (typeof crashPoints)[number]

/**
 * Kills the process here as if the machine had failed, if CRASH_AT names this point: SIGKILL to itself, with nothing
 * written or closed. Without the setting it costs one comparison.
 */
export function crashPoint(ctx: Context, name: CrashPoint): void {
  if (ctx.config.crashAt === name) process.kill(process.pid, 'SIGKILL')
}
