import type { CheckoutStatus, Disposition } from '@farthing/sdk'
import type { Texts } from '../languages/pick.ts'
import type { SearchKind } from './search.ts'

type PaymentsTexts = {
  readonly title: string
  readonly checkouts: string
  readonly money: string
  readonly export: string
  readonly search: string
  readonly searchFor: string
  readonly searched: Readonly<Record<SearchKind, string>>
  readonly asOrder: string
  readonly showAll: string
  readonly from: string
  readonly to: string
  readonly least: string
  readonly most: string
  readonly network: string
  readonly anyNetwork: string
  readonly kind: string
  readonly anyKind: string
  readonly apply: string
  readonly all: string
  readonly status: string
  readonly price: string
  readonly received: string
  readonly order: string
  readonly payer: string
  readonly when: string
  readonly older: string
  readonly newest: string
  readonly further: string
  readonly nothingYet: string
  readonly firstOne: string
  readonly nothingFound: string
  readonly nothingHere: string
  readonly statuses: Readonly<Record<CheckoutStatus, string>>
  readonly dispositions: Readonly<Record<Disposition, string>>
  readonly refunded: string
  readonly partlyRefunded: string
}

/** The list of payments. */
export const paymentsTexts: Texts<PaymentsTexts> = {
  en: {
    title: 'Payments',
    checkouts: 'Checkouts',
    money: 'Money received',
    export: 'Export as CSV',
    search: 'Search',
    searchFor: 'Order, id, address or transaction',
    searched: {
      checkout: 'Searched for the checkout {text}',
      payment: 'Searched for the payment {text}',
      transaction: 'Payments in the transaction {text}',
      address: 'Payments from the address {text}',
      order: 'Checkouts of the order {text}',
    },
    asOrder: 'Search for it as an order',
    showAll: 'Show everything',
    from: 'From',
    to: 'To',
    least: 'At least',
    most: 'At most',
    network: 'Network',
    anyNetwork: 'Any network',
    kind: 'Kind',
    anyKind: 'Any kind',
    apply: 'Show',
    all: 'All',
    status: 'Status',
    price: 'Price',
    received: 'Received',
    order: 'Order',
    payer: 'Payer',
    when: 'When',
    older: 'Older',
    newest: 'Newest',
    further: 'Look further back',
    nothingYet: 'No payments yet',
    firstOne:
      'A checkout appears here as soon as your shop creates one, and again with every step of its payment.',
    nothingFound: 'Nothing matches',
    nothingHere: 'Nothing matches among the payments looked at so far.',
    statuses: {
      OPEN: 'Open',
      PROCESSING: 'Settling',
      COMPLETED: 'Paid',
      EXPIRED: 'Expired',
      CANCELED: 'Canceled',
    },
    dispositions: {
      exact: 'Paid',
      late: 'Late',
      underpaid: 'Underpaid',
      overpaid: 'Overpaid',
      unmatched: 'Unmatched',
    },
    refunded: 'Refunded',
    partlyRefunded: 'Partly refunded',
  },
  es: {
    title: 'Pagos',
    checkouts: 'Cobros',
    money: 'Dinero recibido',
    export: 'Exportar en CSV',
    search: 'Buscar',
    searchFor: 'Pedido, id, dirección o transacción',
    searched: {
      checkout: 'Se buscó el cobro {text}',
      payment: 'Se buscó el pago {text}',
      transaction: 'Pagos de la transacción {text}',
      address: 'Pagos de la dirección {text}',
      order: 'Cobros del pedido {text}',
    },
    asOrder: 'Buscarlo como pedido',
    showAll: 'Mostrar todo',
    from: 'Desde',
    to: 'Hasta',
    least: 'Mínimo',
    most: 'Máximo',
    network: 'Red',
    anyNetwork: 'Cualquier red',
    kind: 'Tipo',
    anyKind: 'Cualquier tipo',
    apply: 'Mostrar',
    all: 'Todos',
    status: 'Estado',
    price: 'Precio',
    received: 'Recibido',
    order: 'Pedido',
    payer: 'Pagador',
    when: 'Cuándo',
    older: 'Anteriores',
    newest: 'Los más recientes',
    further: 'Buscar más atrás',
    nothingYet: 'Aún no hay pagos',
    firstOne: 'Un cobro aparece aquí en cuanto su tienda lo crea, y cambia con cada paso de su pago.',
    nothingFound: 'No hay coincidencias',
    nothingHere: 'No hay coincidencias entre los pagos revisados hasta ahora.',
    statuses: {
      OPEN: 'Abierto',
      PROCESSING: 'En curso',
      COMPLETED: 'Pagado',
      EXPIRED: 'Caducado',
      CANCELED: 'Cancelado',
    },
    dispositions: {
      exact: 'Pagado',
      late: 'Tarde',
      underpaid: 'De menos',
      overpaid: 'De más',
      unmatched: 'Sin cobro',
    },
    refunded: 'Reembolsado',
    partlyRefunded: 'Reembolsado en parte',
  },
}
