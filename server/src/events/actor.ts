import type { Actor } from '@farthing/sdk'

/** An operator at the command line. `name` is what --as says, or the system user's name. */
export function operatorActor(name: string): Actor {
  return { type: 'operator', id: name, name }
}

/** What our own processes do to a store's settings, such as disabling an endpoint that fails. */
export const systemActor: Actor = { type: 'system', id: 'work', name: null }
