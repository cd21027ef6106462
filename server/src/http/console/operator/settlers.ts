import type { FastifyInstance, FastifyRequest } from 'fastify'
import { toShown } from '../../../chains/families.ts'
import type { Context } from '../../../context.ts'
import { type Network, networks } from '../../../networks.ts'
import type { Rails } from '../../../payments/rail.ts'
import { listSettlers, type Settler } from '../../../payments/settlers/rows.ts'
import { type Runway, readRunways } from '../../../payments/settlers/runway.ts'
import { toSafeNumber } from '../../../safe-number.ts'
import { type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { localeOf, showCount, showDuration, showShort, showUnits } from '../formats.ts'
import { renderCommand, renderHead } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import type { Deployment } from './deployment.ts'

const hourMs = 3_600_000n
/** Whoever has this much left need not be told how much exactly. */
const hoursShownMax = 24n * 365n

/** The accounts that pay for settlements: what they hold and how long it lasts. */
export function mountSettlers(
  scope: FastifyInstance,
  ctx: Context,
  deployment: Deployment,
  rails: Rails,
): void {
  scope.get('/operator/settlers', async (request, reply) => {
    const settlers = await listSettlers(deployment.ctx.db, null)
    const runways = new Map<string, Runway>()
    for (const caip2 of new Set(settlers.map(({ network }) => network))) {
      const rail = rails.get(caip2)
      if (!rail) continue
      for (const runway of await readRunways(deployment.ctx, rail))
        runways.set(`${caip2} ${runway.address}`, runway)
    }
    const texts = textsOf(request).health.settlers
    const isOver = ({ state }: Settler) => state === 'retired'
    const rows = [...settlers.filter((each) => !isOver(each)), ...settlers.filter(isOver)].map((settler) =>
      renderSettler(request, settler, runways.get(`${settler.network} ${settler.address}`)),
    )
    return await sendPage(ctx, request, reply, {
      screen: 'settlers',
      title: texts.title,
      main: html`${renderHead(texts.title, { about: texts.about })}
${
  rows.length === 0
    ? html`<p class="pane empty">${texts.empty}</p>`
    : html`<div class="table" tabindex="0" role="region" aria-label="${texts.title}"><table class="cards"><thead><tr>
<th scope="col">${texts.settler}</th><th scope="col">${texts.network}</th>
<th scope="col" class="num">${texts.holds}</th>
<th scope="col" class="num">${texts.cost}</th><th scope="col" class="num">${texts.payments}</th>
<th scope="col" class="num">${texts.lasts}</th></tr></thead><tbody>${rows}</tbody></table></div>`
}
${renderCommand(textsOf(request), rows.length === 0 ? 'farthing-admin settler create NETWORK' : 'farthing-admin settler list')}`,
    })
  })
}

function renderSettler(request: FastifyRequest, settler: Settler, runway: Runway | undefined): Html {
  const { settlers: texts, none, unknown } = textsOf(request).health
  const locale = localeOf(request)
  const network = networks.find(({ caip2 }) => caip2 === settler.network)
  const amount = (units: bigint | null | undefined, isNone: string) =>
    units === null || units === undefined || !network ? isNone : showAmount(locale, network, units)
  const isStopped = settler.stoppedAt !== null && settler.state !== 'retired'
  const state = isStopped ? 'stopped' : runway?.isUnfunded ? 'unfunded' : settler.state
  const colour = { active: 'good', draining: 'busy', retired: '', unfunded: 'bad', stopped: 'bad' }[state]
  const left = runway?.paymentsLeft ?? null
  const hours = runway?.hoursLeft ?? null
  const lasts = hours === null ? none : showLasting(locale, hours)
  return html`<tr><td class="c1">${showShort(toShown(settler.network, settler.address))}
<span class="chip ${colour}">${texts.states[state]}</span></td><td class="c3">${network?.name ?? settler.network}</td>
<td class="num c2">${amount(settler.balanceWei, unknown)}</td>
<td class="num">${amount(runway?.costPerPayment, none)}</td>
<td class="num">${left === null ? none : showCount(locale, left)}</td><td class="num c4">${lasts}</td></tr>`
}

function showAmount(locale: ReturnType<typeof localeOf>, { nativeCurrency }: Network, units: bigint): string {
  const { decimals, symbol } = nativeCurrency
  // Six digits after the point are enough to compare; a settler's key moves nothing by what is shown here.
  const cut = 10n ** BigInt(Math.max(0, decimals - shownDecimals))
  return showUnits(locale, units / cut, Math.min(decimals, shownDecimals), symbol)
}

const shownDecimals = 6

function showLasting(locale: ReturnType<typeof localeOf>, hours: bigint): string {
  const shown = hours > hoursShownMax ? hoursShownMax : hours
  const text = showDuration(locale, toSafeNumber(shown * hourMs))
  return hours > hoursShownMax ? `> ${text}` : text
}
