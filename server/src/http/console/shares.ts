import type { FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { openShares } from '../shares.ts'
import { enterStore } from './visitor.ts'

/**
 * Requests of one member, and of all members of one store, that are handled at once. A member cannot use all places of a
 * store, and a store uses fewer than half of the connections that transactions have by default.
 */
const memberAtOnce = 2
const storeAtOnce = 3
/** More than a person with many tabs waits for. Requests wait for their store only after their member's turn has come. */
const memberWaitingMax = 20

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while the request is handled. */
    leaveQueue: (() => void) | null
  }
}

/**
 * What the members of a store may ask for together, and each member in all their stores: as many requests per second as
 * one address may, wherever they come from, and few at once. Routes that need no session have the limit of the address.
 */
export function openConsoleShares(ctx: Context) {
  const shares = openShares(ctx, 'console')
  const { addressRequestsPerSecond: perSecond } = ctx.config
  const takeOfMember = shares.openRequests(perSecond, 'one member')
  const takeOfStore = shares.openRequests(perSecond, 'the members of one store')
  const members = shares.openFairQueue('member', memberAtOnce, memberWaitingMax)
  const stores = shares.openFairQueue('store', storeAtOnce, Number.POSITIVE_INFINITY)

  return {
    admit(request: FastifyRequest): void {
      const { session } = request.visitor
      if (session && !request.routeOptions.config.isOpen) takeOfMember(session.member.id)
      enterStore(request)
      if (request.visitor.store) takeOfStore(request.visitor.store.storeId)
    },
    async inQueue(request: FastifyRequest, work: () => Promise<unknown>): Promise<unknown> {
      const { session, store } = request.visitor
      // The handler of HEAD is that of GET, with its place.
      if (!session || request.leaveQueue || request.routeOptions.config.isOpen) return await work()
      return await members.take(session.member.id, async (endMember) => {
        request.leaveQueue = endMember
        if (!store) return await work()
        return await stores.take(store.storeId, async (endStore) => {
          request.leaveQueue = () => {
            endStore()
            endMember()
          }
          return await work()
        })
      })
    },
  }
}
