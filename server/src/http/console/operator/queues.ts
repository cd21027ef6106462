import type { FastifyInstance, FastifyRequest } from 'fastify'
import { measureDecisions } from '../../../checkouts/payments/decision-rows.ts'
import type { Context } from '../../../context.ts'
import { measureUnnumbered, type Queue } from '../../../events/rows.ts'
import { measureEndpoints } from '../../../events/webhooks/endpoint-rows.ts'
import { measureMails } from '../../../mails/send.ts'
import { networks } from '../../../networks.ts'
import { measureInFlight } from '../../../payments/settlers/gas-rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { localeOf, showCount, showDuration } from '../formats.ts'
import { renderCommand, renderHead } from '../parts.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import type { Deployment } from './deployment.ts'

/** Counting more would say nothing else, and takes long. */
const countMax = 10_000
/** What waits longer than this is worth a look; webhooks and mails wait for others than us. */
const lateMs = 60_000

type QueueId = keyof Texts['health']['queues']['names']
/** What should be empty, however young it is. */
const troubles: readonly QueueId[] = ['failing', 'disabled']

type Row = { readonly id: QueueId; readonly queue: Queue; readonly network: string }

/** What waits, over all stores. */
export function mountQueues(scope: FastifyInstance, ctx: Context, deployment: Deployment): void {
  const { db, config } = deployment.ctx

  async function readRows(): Promise<Row[]> {
    const offered = networks.filter(({ id }) => config.networks.includes(id))
    const [inFlight, decisions, events, endpoints, mails] = await Promise.all([
      Promise.all(offered.map(({ caip2 }) => measureInFlight(db, caip2, countMax))),
      measureDecisions(db),
      measureUnnumbered(db, countMax),
      measureEndpoints(db),
      measureMails(db),
    ])
    const network = ''
    return [
      ...offered.flatMap(({ name }, i) =>
        (['claimed', 'sent'] as const).map((id) => ({
          id,
          network: name,
          queue: inFlight[i]?.[id] ?? { count: 0, oldestAt: null },
        })),
      ),
      { id: 'decisions', network, queue: decisions },
      { id: 'events', network, queue: events },
      { id: 'due', network, queue: endpoints.due },
      { id: 'failing', network, queue: endpoints.failing },
      { id: 'disabled', network, queue: { count: endpoints.disabled, oldestAt: null } },
      { id: 'mails', network, queue: mails },
    ]
  }

  scope.get('/operator/queues', async (request, reply) => {
    const rows = await readRows()
    const texts = textsOf(request).health.queues
    return await sendPage(ctx, request, reply, {
      screen: 'queues',
      title: texts.title,
      main: html`${renderHead(texts.title, { about: texts.about })}
<div class="table" tabindex="0" role="region" aria-label="${texts.title}"><table class="cards"><thead><tr>
<th scope="col">${texts.what}</th><th scope="col" class="num">${texts.waits}</th>
<th scope="col" class="num">${texts.oldest}</th><th scope="col">${texts.hint}</th></tr></thead>
<tbody>${rows.map((row) => renderRow(request, row, ctx.now()))}</tbody></table></div>
${renderCommand(textsOf(request), `curl -s http://127.0.0.1:${config.operationsPort}/metrics | grep ^farthing_`)}`,
    })
  })
}

function renderRow(request: FastifyRequest, { id, queue, network }: Row, now: Date): Html {
  const { queues: texts, none } = textsOf(request).health
  const locale = localeOf(request)
  const { count, oldestAt } = queue
  const waitedMs = oldestAt === null ? 0 : now.getTime() - oldestAt.getTime()
  const isLate = waitedMs > lateMs
  const shown = count >= countMax ? `${showCount(locale, countMax)}+` : showCount(locale, count)
  return html`<tr><td class="c1">${fill(texts.names[id], { network })}</td><td class="num c2">${shown}</td>
<td class="num c4">${
    oldestAt === null
      ? none
      : html`<span class="chip${isLate && html` bad`}">${showDuration(locale, waitedMs)}</span>`
  }</td><td class="wraps soft c3">${isLate || (count > 0 && troubles.includes(id)) ? texts.hints[id] : none}</td></tr>`
}
