import type { SimulatedCase } from '@farthing/sdk'
import { type Command, clientOf } from '../command.ts'
import { good } from '../terminal.ts'

export const triggerCommand: Command = {
  name: 'trigger',
  arguments: '<case> <checkoutId>',
  summary: 'Make a case happen in a test store',
  options: {},
  notes: ['  farthing trigger payment.late ch_…', '  The cases: the table in docs/test-stores.md'],
  async run(call) {
    const [what = '', checkoutId = ''] = call.positionals
    // The server knows the cases, and says which there are.
    const simulated = await clientOf(call.settings).test.simulate(checkoutId, what as SimulatedCase)
    const { answer, checkout } = simulated
    const told = answer && `${answer.status}${answer.error === null ? '' : ` ${answer.error}`}`
    call.terminal.show(simulated, () => [
      good(`${simulated.case} begun; its events tell what follows`),
      '',
      ...call.terminal.facts([
        ['checkout', checkout.id],
        ['status', checkout.status],
        ...(told === null ? [] : ([['payer told', told]] as const)),
      ]),
    ])
    return undefined
  },
}
