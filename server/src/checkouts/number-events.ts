import type { Context } from '../context.ts'
import { assignWaitingSequences, type NumberingPass } from '../events/assign-sequence.ts'
import { openBooks } from '../movements/book.ts'
import { openReceipts } from './buyer-receipts/issue.ts'

/**
 * Numbers the waiting events, and in the same transaction writes the receipts and the lines of the books that follow from
 * them. That transaction holds the counters of its stores' logs, so one process at a time numbers a store's receipts and
 * lines, and no crash can leave a gap. Returns how many events were numbered.
 */
export async function numberEvents(ctx: Context, pass?: NumberingPass): Promise<number> {
  return await assignWaitingSequences(ctx, pass, [openReceipts(ctx), openBooks(ctx)])
}
