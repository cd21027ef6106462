import { operatorActor } from '../../src/events/append.ts'

/** Who acts where a test does what an operator would. */
export const operator = operatorActor('test')
/** An operator may make any key. */
export const byOperator = { actor: operator, limit: null }
