import type { Currency } from '@farthing/sdk'
import { type Html, html } from '../../page/html.ts'
import { renderCheck, renderChoice, renderField, renderHead, renderOptions } from '../parts.ts'
import type { Screen } from '../screen.ts'
import { type Entered, type EntryFault, hasInvoice, linesOffered, untilChoices } from './entered.ts'

export function renderNoWallet(screen: Screen): Html {
  const texts = screen.texts.newPayment
  const { base } = screen
  return html`${renderHead(texts.title)}
<section class="pane empty"><h2>${texts.noWallet}</h2><p class="soft">${texts.noWalletAbout}</p>${
    screen.may('wallets:write')
      ? html`<p><a class="button" href="${base}/wallets/new">${texts.toWallets}</a></p>`
      : html`<p>${texts.askOwner}</p>`
  }</section>`
}

export function renderForm(
  screen: Screen,
  entered: Entered,
  currencies: readonly Currency[],
  fault: EntryFault | null,
): Html {
  const { base, formFields } = screen
  const texts = screen.texts.newPayment
  const { key, title, amount, currency, until, date, kind } = entered
  const wrong = (...faults: readonly EntryFault[]) =>
    fault && faults.includes(fault) && html` aria-invalid="true" aria-describedby="fault"`
  const choices = untilChoices.map((each) => [each, texts.untils[each]] as const)
  return html`${renderHead(texts.title, { about: texts.about })}
<section class="pane stack">${fault && html`<p class="note" id="fault" role="alert">${texts.faults[fault]}</p>`}
<form class="fields" method="post" action="${base}/new">${formFields}<input type="hidden" name="key" value="${key}">
<label>${texts.what}<input name="title" value="${title}" maxlength="200" autocomplete="off" required autofocus${wrong(
    'title',
  )}><small>${texts.whatAbout}</small></label>
<div class="till"><label>${texts.amount}<input class="price" name="amount" value="${
    amount
  }" inputmode="decimal" autocomplete="off" maxlength="23" placeholder="0.00"${wrong(
    'amount',
    'ambiguous',
  )}></label>
<label>${texts.currency}<select name="currency"${wrong('currency')}>${currencies.map(
    ({ code, name }) =>
      html`<option value="${code}"${code === currency && html` selected`}>${code} · ${name}</option>`,
  )}</select></label></div>
<div class="pair"><label>${texts.until}<select name="until">${renderOptions(until, choices)}</select></label>
<label class="day">${texts.day}<input type="date" name="date" value="${date}"${wrong('until')}><small>${
    texts.dayAbout
  }</small></label></div>
<fieldset class="choices"><legend>${texts.forWhom}</legend>${renderChoice(
    'kind',
    'once',
    kind === 'once',
    texts.once,
  )}${renderChoice('kind', 'many', kind === 'many', texts.many)}</fieldset>
<details id="invoice"${hasInvoice(entered) && html` open`}><summary>${texts.invoice.title}</summary>${renderInvoice(
    screen,
    entered,
  )}</details>
<div><button>${texts.make}</button></div></form></section>`
}

function renderInvoice({ texts: all }: Screen, entered: Entered): Html {
  const texts = all.newPayment.invoice
  const { number, due, buyerName, buyerAddress, taxRate, isTaxIncluded, lines } = entered
  const off = { autocomplete: 'off' }
  const decimal = { ...off, inputmode: 'decimal', maxlength: 23 }
  const rows = Array.from({ length: linesOffered }, (_, i) => {
    const line = lines[i] ?? { text: '', quantity: '', unitAmount: '', taxRate: '' }
    return html`<fieldset class="quad"><legend>${texts.line.replace('{number}', String(i + 1))}</legend>
${renderField(texts.text, `text${i}`, { ...off, value: line.text, maxlength: 200 })}
${renderField(texts.quantity, `quantity${i}`, { ...decimal, value: line.quantity })}
${renderField(texts.unitAmount, `unitAmount${i}`, { ...decimal, value: line.unitAmount })}
${renderField(texts.taxRate, `taxRate${i}`, { ...decimal, value: line.taxRate })}</fieldset>`
  })
  return html`<div class="fields"><p class="soft">${texts.about}</p>
<div class="pair">${renderField(texts.number, 'number', { ...off, value: number, maxlength: 64 })}
${renderField(texts.due, 'due', { type: 'date', value: due }, texts.dueAbout)}</div>
${renderField(texts.buyerName, 'buyerName', { ...off, value: buyerName, maxlength: 200 })}
<label>${texts.buyerAddress}<textarea name="buyerAddress" rows="3" maxlength="600">${buyerAddress}</textarea></label>
${renderField(texts.taxRate, 'taxRate', { ...decimal, value: taxRate }, texts.taxRateAbout)}
${renderCheck('taxIncluded', texts.taxIncluded, isTaxIncluded)}
<p class="soft">${texts.linesAbout}</p>${rows}</div>`
}
