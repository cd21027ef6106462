import { networks } from '../../../networks.ts'
import { type Html, html } from '../../page/html.ts'
import { showShort } from '../formats.ts'

/** A transaction, as a link to where anybody can look it up, if there is such a place. */
export function renderTransaction(caip2: string, transaction: string): Html {
  const explorerUrl = networks.find((each) => each.caip2 === caip2)?.explorerUrl ?? null
  const short = showShort(transaction)
  return explorerUrl === null
    ? short
    : html`<a href="${explorerUrl}/tx/${transaction}" rel="noreferrer" target="_blank">${short}</a>`
}
