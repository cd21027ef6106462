import type { Currency } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { currencies } from './iso4217.ts'
import { fixedQuote, pickQuote } from './quote.ts'
import { readAllRates } from './rows.ts'

/** The currencies that a checkout can be priced in now: USD, which needs no rate, then the others by code. */
export async function listCurrencies(ctx: Context, now: Date): Promise<Currency[]> {
  const byCurrency = Map.groupBy(await readAllRates(ctx.db), ({ currency }) => currency)
  const usdRows = byCurrency.get('USD') ?? []
  const listed: Currency[] = []
  for (const [code, name] of currencies) {
    const quote = fixedQuote(ctx, code, now) ?? pickQuote(byCurrency.get(code) ?? [], usdRows, now)
    if (code === 'USD') listed.unshift({ code, name, source: 'fixed', asOf: null })
    else if (quote) listed.push({ code, name, source: quote.source, asOf: quote.asOf.toISOString() })
  }
  return listed
}
