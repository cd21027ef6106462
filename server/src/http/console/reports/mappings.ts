import type { FastifyReply } from 'fastify'
import { type Delimiter, delimiters } from '../../../csv.ts'
import { Refusal } from '../../../members/refusal.ts'
import { dateForms, type FieldId, fields } from '../../../movements/fields.ts'
import type { Column } from '../../../movements/formats.ts'
import {
  addMapping,
  changeMapping,
  columnsMax,
  deleteMapping,
  findMapping,
  type Mapping,
} from '../../../movements/mappings.ts'
import { type Html, html } from '../../page/html.ts'
import { readName } from '../fields.ts'
import { type Choices, renderCheck, renderChooser, renderField, renderHead, renderHidden } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'

const path = '/reports/mapping'
const writing = 'payments:write'

/** Making, changing and deleting a store's own file formats. Whoever sees the reports may use them. */
export function mountMappings({ get, post }: StoreRoutes): void {
  get(path, writing, async (screen) => {
    const mapping = screen.asked('place') === '' ? null : await readMapping(screen, screen.asked('place'))
    return await sendForm(screen, mapping)
  })

  post(path, writing, async (screen) => {
    const { storeId, act, field, texts } = screen
    const wanted = readForm(screen)
    const place = field('place')
    const isKept =
      place === ''
        ? await act(({ ctx }) => addMapping(ctx.db, storeId, wanted))
        : await act(({ ctx }) => changeMapping(ctx.db, storeId, { ...wanted, place: placeOf(place) }))
    if (!isKept && place === '') throw new Refusal('invalid', { detail: texts.reports.mappings.max })
    if (!isKept) throw new Refusal('not_found')
    return screen.go('/reports')
  })

  post(`${path}/delete`, writing, async (screen) => {
    const place = placeOf(screen.field('place'))
    await screen.act(({ ctx }) => deleteMapping(ctx.db, screen.storeId, place))
    return screen.go('/reports')
  })
}

/** The mapping that a query or a form names. */
export async function readMapping({ ctx, storeId }: Screen, place: string): Promise<Mapping> {
  const mapping = await findMapping(ctx.db, storeId, placeOf(place))
  if (!mapping) throw new Refusal('not_found')
  return mapping
}

function placeOf(text: string): number {
  if (!/^([1-9]|10)$/.test(text)) throw new Refusal('not_found')
  return Number.parseInt(text, 10)
}

function readForm(screen: Screen): Omit<Mapping, 'place'> {
  const { field } = screen
  const texts = screen.texts.reports.mappings
  const columns = Array.from({ length: columnsMax }, (_, i) => readColumn(screen, i)).flatMap(
    (column) => column ?? [],
  )
  if (columns.length === 0) throw new Refusal('invalid', { detail: texts.noColumns })
  return {
    name: readName(screen, 'name', texts.name),
    delimiter: delimiters.find((each) => nameOf[each] === field('delimiter')) ?? ',',
    decimal: field('decimal') === 'comma' ? ',' : '.',
    dates: dateForms.find((each) => each === field('dates')) ?? 'YYYY-MM-DD',
    hasMark: field('mark') === 'yes',
    columns,
  }
}

function readColumn(screen: Screen, place: number): Column | null {
  const name = `heading${place}`
  const field = fieldIds.find((each) => each === screen.field(`field${place}`))
  if (!field) return null
  const { headings, mappings } = screen.texts.reports
  return {
    field,
    name: screen.field(name) === '' ? headings[field] : readName(screen, name, mappings.heading),
  }
}

const fieldIds = Object.keys(fields) as FieldId[]

/** What a form can send: it would not send a tab as it is. */
const nameOf: Readonly<Record<Delimiter, 'comma' | 'semicolon' | 'tab'>> = {
  ',': 'comma',
  ';': 'semicolon',
  '\t': 'tab',
}

async function sendForm(screen: Screen, mapping: Mapping | null): Promise<FastifyReply> {
  const { title, make } = screen.texts.reports.mappings
  return await screen.send({
    screen: 'reports',
    title,
    main: html`${renderHead(mapping?.name ?? make, {})}${renderForm(screen, mapping)}`,
  })
}

function renderForm(screen: Screen, mapping: Mapping | null): Html {
  const { base, formFields, texts } = screen
  const { mappings } = texts.reports
  const place = mapping && renderHidden('place', String(mapping.place))
  const choices = Object.values(nameOf).map((each): [string, string] => [each, mappings.delimiters[each]])
  const decimals: Choices = [
    ['point', '1234.50'],
    ['comma', '1234,50'],
  ]
  const rows = Array.from({ length: columnsMax }, (_, i) =>
    renderColumn(screen, mapping?.columns[i] ?? null, i),
  )
  return html`<form class="pane stack" method="post" action="${base}${path}">${formFields}${place}
${renderField(mappings.name, 'name', { value: mapping?.name ?? '', required: true, maxlength: 100 })}
${renderChooser(mappings.delimiter, 'delimiter', nameOf[mapping?.delimiter ?? ','], choices)}
${renderChooser(mappings.decimal, 'decimal', mapping?.decimal === ',' ? 'comma' : 'point', decimals)}
${renderChooser(
  mappings.dates,
  'dates',
  mapping?.dates ?? dateForms[0],
  dateForms.map((each) => [each, each] as const),
)}
${renderCheck('mark', mappings.mark, mapping?.hasMark ?? false)}
<h2>${mappings.columns}</h2><p class="soft">${mappings.columnsAbout}</p>${rows}
<div class="buttons"><button>${mappings.save}</button></div></form>${
    mapping &&
    html`<form class="pane" method="post" action="${base}${path}/delete">${formFields}${place}
<button class="quiet">${mappings.remove}</button></form>`
  }`
}

function renderColumn({ texts: { reports } }: Screen, column: Column | null, place: number): Html {
  const { mappings, headings } = reports
  const choices: Choices = [
    ['', mappings.none],
    ...fieldIds.map((each): [string, string] => [each, headings[each]]),
  ]
  const number = String(place + 1)
  const field = renderChooser(`${mappings.field} ${number}`, `field${place}`, column?.field ?? '', choices)
  const heading = renderField(`${mappings.heading} ${number}`, `heading${place}`, {
    value: column?.name ?? '',
    maxlength: 100,
  })
  return html`<div class="split">${field}${heading}</div>
`
}
