import { SignerAwayError, SignRefusedError } from '../../chains/signers/signing.ts'
import type { Context } from '../../context.ts'

/**
 * After a refusal: longer than a lane may be silent before payments get 503, so that nobody signs a payment that this
 * settler will not send.
 */
const refusedRestMs = 30_000

/**
 * Runs a lane's steps while its signer can be reached, and reports when that changes. Without a signer the lane is
 * silent: it gives up its lease, another process may take it, and if none does, payments get 503 before they are
 * claimed. What was committed is unaffected, and everything goes on where it stopped.
 */
export function openSteps(
  ctx: Context,
  network: string,
  signer: { readonly address: string; readonly isAway: () => boolean },
): (step: () => Promise<boolean | null>) => Promise<boolean> {
  const fields = { network, settler: signer.address }
  let isGone = false
  let restsUntil = 0

  function noteGone(says?: SignerAwayError): false {
    if (!isGone)
      ctx.log.warn(
        { ...fields, err: says },
        'the signer cannot be reached, so nothing is sent from this settler; check that signer runs, with the same SIGNER_SOCKET',
      )
    isGone = true
    return false
  }

  return async (step) => {
    if (signer.isAway()) return noteGone()
    if (ctx.now().getTime() < restsUntil) return false
    try {
      const isMore = await step()
      if (isGone) ctx.log.info(fields, 'the signer can be reached again')
      isGone = false
      return isMore === true
    } catch (error) {
      if (error instanceof SignerAwayError) return noteGone(error)
      if (!(error instanceof SignRefusedError)) throw error
      restsUntil = ctx.now().getTime() + refusedRestMs
      ctx.metrics.taskFailures.inc({ task: `sign ${network} ${signer.address}` })
      ctx.log.error(
        { ...fields, reason: error.message },
        'a settler’s key must not sign what its lane asked for; trying again in 30 s. If a limit is used up, raise it or wait until midnight (UTC)',
      )
      return false
    }
  }
}
