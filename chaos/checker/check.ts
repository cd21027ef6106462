import { checkAcknowledged, checkInvitations, checkIsolation, checkRepeats } from './answers.ts'
import { checkCells } from './cells.ts'
import { checkArrows, checkLog, checkReplay } from './events.ts'
import type { History, Violation } from './history.ts'
import {
  checkCharges,
  checkCompleteness,
  checkConservation,
  checkSingleCredits,
  checkSoundness,
} from './money.ts'
import { checkMovements } from './movements.ts'
import { checkNonces } from './nonces.ts'
import { checkOrigins, checkTerms } from './orders.ts'
import { checkRefunds } from './refunds.ts'
import { checkCursors, leaveOutLost } from './restored.ts'

/**
 * Checks I1 to I19 on a history. It is a pure function, so a stored history can be checked again. It shares no code with
 * the server, so that it cannot repeat a mistake in how the server reads the chain or its own tables.
 */
export function check(history: History): Violation[] {
  const judged = leaveOutLost(history)
  return [
    checkSoundness,
    checkSingleCredits,
    checkCompleteness,
    checkCharges,
    checkConservation,
    checkNonces,
    checkArrows,
    checkAcknowledged,
    checkInvitations,
    checkLog,
    checkRepeats,
    checkIsolation,
    checkReplay,
    checkCursors,
    checkRefunds,
    checkMovements,
    checkCells,
    checkTerms,
    checkOrigins,
    ({ undone }: History) => undone.map((what): Violation => ({ invariant: 'I14', what })),
  ].flatMap((decide) => decide(judged))
}
