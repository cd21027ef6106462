import { toShown } from '../../../chains/families.ts'
import { tokenOf } from '../../../checkouts/rollups/rollup.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showCount, showTime, showUnits } from '../formats.ts'
import { type Home, undecidedMax } from './read.ts'
import type { Writer } from './writer.ts'

/** What waits for somebody, the most urgent first: nobody can pay, where money goes, money, programs. */
export function renderNeeds(home: Home, writer: Writer, base: string): Html {
  const { texts } = writer
  const at = (path: string) => `${base}${path}`
  const needs = [
    !home.hasWallet && item(at('/wallets'), texts.noWallet, texts.noWalletAbout),
    home.hasWaitingWallet && item(at('/wallets'), texts.walletWaits, texts.walletWaitsAbout),
    home.undecided.length > 0 && renderUndecided(home, writer, at('/inbox')),
    home.refunds > 0 &&
      item(
        at('/refunds?status=REQUESTED'),
        fill(home.refunds === 1 ? texts.refundOne : texts.refund, {
          count: showCount(writer.locale, home.refunds),
        }),
        texts.refundAbout,
      ),
    ...home.troubled.map(({ id, url, failingSince }) => {
      const { host: name, pathname } = new URL(url)
      const host = html`<bdi>${name + pathname}</bdi>`
      const about = failingSince
        ? fill(texts.endpointFailing, { host, time: showTime(writer.locale, failingSince, home.now) })
        : fill(texts.endpointOff, { host })
      return item(at(`/developers/endpoints/${id}`), texts.endpoint, about)
    }),
  ].filter((each) => each !== false)
  const list =
    needs.length > 0
      ? html`<ul class="list todos">${needs}</ul>`
      : html`<p class="soft">${texts.needsNothing}</p>`
  return html`<section class="facts needs" aria-labelledby="needs"><h2 id="needs">${texts.needs}</h2>${list}</section>`
}

function item(href: string, title: string | Html, about: string | Html): Html {
  return html`<li><a href="${href}">${title}</a><br><small>${about}</small></li>`
}

function renderUndecided({ undecided }: Home, { texts, locale }: Writer, href: string): Html {
  const sums = new Map<string, { units: bigint; decimals: number; symbol: string }>()
  for (const payment of undecided) {
    const token = tokenOf({ network: payment.network, asset: toShown(payment.network, payment.asset) })
    if (!token) continue
    const sum = sums.get(token.symbol) ?? { units: 0n, decimals: token.decimals, symbol: token.symbol }
    sums.set(token.symbol, { ...sum, units: sum.units + payment.amount })
  }
  const amount = [...sums.values()]
    .map(({ units, decimals, symbol }) => showUnits(locale, units, decimals, symbol))
    .join(', ')
  const isMore = undecided.length > undecidedMax
  const count = showCount(locale, isMore ? undecidedMax : undecided.length)
  const title = fill(isMore ? texts.decideMany : undecided.length === 1 ? texts.decideOne : texts.decide, {
    count,
  })
  return item(href, title, fill(texts.decideAbout, { amount }))
}
