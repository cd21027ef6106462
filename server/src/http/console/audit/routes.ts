import type { FastifyReply } from 'fastify'
import { explainFinding } from '../../../audit/explain.ts'
import { listCompared, listOfStore } from '../../../audit/read.ts'
import type { Context } from '../../../context.ts'
import type { Rails } from '../../../payments/rail.ts'
import { openRails } from '../../../payments/rails.ts'
import { askToLookUp } from '../../../payments/transfers/look-ups.ts'
import { type Screen, type StoreRoutes, withQuery } from '../screen.ts'
import { hasText } from '../texts/choose.ts'
import { type Recoverable, renderAudit } from './view.ts'

const path = '/reports/audit'
const writing = 'payments:write'
/** More are not decided about one by one. */
const findingsMax = 200
const noteBytesMax = 1_000
/** work looks at a transaction within seconds. */
const lookAgainSeconds = 5

/** What the audit found about the store's money, and what members do about it. */
export function mountAudit({ get, post }: StoreRoutes, ctx: Context): void {
  const rails = openRails(ctx)
  const canRecover = recoverableOn(ctx, rails)

  get(path, 'payments:read', async (screen) => {
    const { db } = screen.ctx
    const findings = await listOfStore(db, screen.storeId, findingsMax)
    const compared = await listCompared(db, screen.storeId)
    const { results } = screen.texts.audit
    const said = screen.asked('said')
    const isLooking = findings.some((one) => one.lookUp === 'looking' && one.resolvedAt === null)
    return screen.send({
      screen: 'reports',
      title: screen.texts.audit.title,
      againSeconds: isLooking ? lookAgainSeconds : null,
      main: renderAudit(screen, {
        ...{ findings, compared, canRecover },
        said: hasText(results, said) ? said : null,
      }),
    })
  })

  post(`${path}/recover`, writing, async (screen) => {
    const one = await findOpen(screen)
    if (one?.kind !== 'missing' || !canRecover(one)) return answer(screen, 'gone')
    await screen.act(({ ctx: { db } }) => askToLookUp(db, one.network, one.transaction))
    return answer(screen, 'asked')
  })

  post(`${path}/explain`, writing, async (screen) => {
    const note = screen.field('note').trim().replaceAll(/\s+/g, ' ')
    if (note === '' || Buffer.byteLength(note) > noteBytesMax) return answer(screen, 'note')
    const isDone = await screen.act(({ ctx: { db }, actor }) =>
      explainFinding(db, screen.storeId, screen.field('findingId'), { note, actor }),
    )
    return answer(screen, isDone ? 'explained' : 'gone')
  })
}

/** Whether `work` can look at the transaction: it follows the network, and finds transactions there by their hash. */
function recoverableOn({ config }: Context, rails: Rails): Recoverable {
  return ({ network, transaction }) => {
    const rail = rails.get(network)
    if (!rail || !config.networks.includes(rail.network.id)) return false
    return transaction !== '' && rail.parseTransactionHash?.(transaction) === transaction
  }
}

async function findOpen({ ctx: { db }, storeId, field }: Screen) {
  const findings = await listOfStore(db, storeId, findingsMax)
  return findings.find(({ id, resolvedAt }) => id === field('findingId') && resolvedAt === null)
}

function answer(screen: Screen, said: string): FastifyReply {
  return screen.go(withQuery(path, { said }))
}
