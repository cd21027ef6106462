import type { Period } from '../../../checkouts/rollups/takings.ts'
import type { Texts } from '../languages/pick.ts'
import type { Latest } from './read.ts'

export type HomeTexts = {
  readonly title: string
  readonly period: string
  readonly periods: Readonly<Record<Period, string>>
  readonly taken: Readonly<Record<Period, string>>
  readonly more: string
  readonly less: string
  readonly same: string
  readonly than: string
  readonly nothingBefore: string
  readonly untilNow: Readonly<Record<Period, string>>
  readonly beforeRefunds: string
  readonly converted: string
  readonly left: string
  readonly counting: string
  readonly figures: string
  readonly payments: string
  readonly average: string
  readonly median: string
  readonly countMore: string
  readonly countLess: string
  readonly fewer: string
  readonly quicker: string
  readonly slower: string
  readonly equal: string
  readonly chart: string
  readonly chartAbout: string
  readonly chartEmpty: string
  readonly day: string
  readonly beside: Readonly<Record<'week' | 'month', string>>
  readonly numbers: string
  readonly needs: string
  readonly needsNothing: string
  readonly decide: string
  readonly decideOne: string
  readonly decideMany: string
  readonly decideAbout: string
  readonly endpoint: string
  readonly endpointFailing: string
  readonly endpointOff: string
  readonly walletWaits: string
  readonly walletWaitsAbout: string
  readonly refund: string
  readonly refundOne: string
  readonly refundAbout: string
  readonly noWallet: string
  readonly noWalletAbout: string
  readonly latest: string
  readonly all: string
  readonly order: string
  readonly noOrder: string
  readonly states: Readonly<Record<Latest['state'], string>>
  readonly ended: string
  readonly endedAbout: string
  readonly paid: string
  readonly expired: string
  readonly canceled: string
  readonly open: string
  readonly empty: string
  readonly emptyNoWallet: string
  readonly emptyWallet: string
  readonly emptyReady: string
  readonly emptyNew: string
  readonly emptyShop: string
}

export const homeTexts: Texts<HomeTexts> = {
  en: {
    title: 'Home',
    period: 'Period',
    periods: { today: 'Today', week: 'This week', month: 'This month' },
    taken: { today: 'Taken today', week: 'Taken this week', month: 'Taken this month' },
    more: '{share} more',
    less: '{share} less',
    same: 'As much',
    than: 'than {days}, which brought {amount}',
    nothingBefore: 'Nothing came in on {days}',
    untilNow: {
      today: '{days} until this time',
      week: '{days} until this time',
      month: '{days} until this time',
    },
    beforeRefunds: 'Refunds are not subtracted.',
    converted: '{amount} of it was priced in other currencies and is converted at today’s rate.',
    left: 'Not in this sum: {amounts}, because there is no exchange rate to {currency} at the moment.',
    counting: '{count} events are still to be counted, so these figures are too low for now.',
    figures: 'Figures',
    payments: 'Payments',
    average: 'Average payment',
    median: 'From checkout to paid, median',
    countMore: '{amount} more than {days}',
    countLess: '{amount} less than {days}',
    fewer: '{amount} fewer than {days}',
    quicker: '{amount} quicker than {days}',
    slower: '{amount} slower than {days}',
    equal: 'Same as {days}',
    chart: 'Takings per day',
    chartAbout:
      'Bar chart of takings per day, {days}. The best day was {day} with {amount}. The table below has all numbers.',
    chartEmpty: 'Bar chart of takings per day, {days}. Nothing came in.',
    day: 'Day',
    beside: { week: 'Same day a week before', month: 'Same day in {month}' },
    numbers: 'The numbers',
    needs: 'Needs you',
    needsNothing: 'Nothing. All money is matched, and everything works.',
    decide: 'Decide on {count} payments',
    decideOne: 'Decide on a payment',
    decideMany: 'Decide on more than {count} payments',
    decideAbout: '{amount} arrived late, short, twice or without a checkout',
    endpoint: 'Fix a webhook endpoint',
    endpointFailing: '{host} has taken nothing since {time}',
    endpointOff: '{host} was switched off, because it took nothing',
    walletWaits: 'Confirm or refuse a new wallet',
    walletWaitsAbout: 'Somebody asked for payments to go to another address',
    refund: 'Finish {count} refunds',
    refundOne: 'Finish a refund',
    refundAbout: 'They wait for a signature or a transaction',
    noWallet: 'Add a wallet',
    noWalletAbout: 'Without one nobody can pay you',
    latest: 'Latest payments',
    all: 'All payments',
    order: 'Order {id}',
    noOrder: 'No order',
    states: {
      paid: 'Paid',
      settling: 'Settling',
      late: 'Late',
      underpaid: 'Underpaid',
      overpaid: 'Overpaid',
      unmatched: 'Unmatched',
      reversed: 'Reversed',
      refunded: 'Refunded',
      partlyRefunded: 'Partly refunded',
    },
    ended: 'How checkouts ended',
    endedAbout: 'Of {count} made in this time',
    paid: 'Paid',
    expired: 'Expired',
    canceled: 'Canceled',
    open: 'Still open',
    empty: 'Nothing has been paid yet',
    emptyNoWallet: 'First say where your money goes: payments go straight to your own wallet.',
    emptyWallet: 'Add a wallet',
    emptyReady:
      'Your wallet is set. Make a payment and open its link: as soon as it is paid you see it here.',
    emptyNew: 'New payment',
    emptyShop: 'Your shop does the same by API:',
  },
  es: {
    title: 'Inicio',
    period: 'Periodo',
    periods: { today: 'Hoy', week: 'Esta semana', month: 'Este mes' },
    taken: { today: 'Cobrado hoy', week: 'Cobrado esta semana', month: 'Cobrado este mes' },
    more: '{share} más',
    less: '{share} menos',
    same: 'Lo mismo',
    than: 'que {days}, con {amount}',
    nothingBefore: 'No entró nada: {days}',
    untilNow: {
      today: 'el {days} hasta esta hora',
      week: 'el {days} hasta esta hora',
      month: 'el {days} hasta esta hora',
    },
    beforeRefunds: 'Los reembolsos no están restados.',
    converted: '{amount} tenía su precio en otras monedas y está convertido al cambio de hoy.',
    left: 'No está en esta suma: {amounts}, porque ahora no hay tipo de cambio a {currency}.',
    counting: 'Faltan {count} eventos por contar, así que estas cifras son todavía demasiado bajas.',
    figures: 'Cifras',
    payments: 'Pagos',
    average: 'Pago medio',
    median: 'De la creación al pago, mediana',
    countMore: '{amount} más que el {days}',
    countLess: '{amount} menos que el {days}',
    fewer: '{amount} menos que el {days}',
    quicker: '{amount} más rápido que el {days}',
    slower: '{amount} más lento que el {days}',
    equal: 'Igual que el {days}',
    chart: 'Ingresos por día',
    chartAbout:
      'Gráfico de barras de los ingresos por día, {days}. El mejor día fue el {day}, con {amount}. La tabla siguiente tiene todos los números.',
    chartEmpty: 'Gráfico de barras de los ingresos por día, {days}. No entró nada.',
    day: 'Día',
    beside: { week: 'El mismo día de la semana anterior', month: 'El mismo día de {month}' },
    numbers: 'Los números',
    needs: 'Espera su decisión',
    needsNothing: 'Nada. Todo el dinero está asignado y todo funciona.',
    decide: 'Decida sobre {count} pagos',
    decideOne: 'Decida sobre un pago',
    decideMany: 'Decida sobre más de {count} pagos',
    decideAbout: '{amount} llegó tarde, de menos, dos veces o sin pedido',
    endpoint: 'Arregle un receptor de webhooks',
    endpointFailing: '{host} no ha aceptado nada desde {time}',
    endpointOff: '{host} se desactivó porque no aceptaba nada',
    walletWaits: 'Confirme o rechace una cartera nueva',
    walletWaitsAbout: 'Alguien pidió que los pagos vayan a otra dirección',
    refund: 'Termine {count} reembolsos',
    refundOne: 'Termine un reembolso',
    refundAbout: 'Esperan una firma o una transacción',
    noWallet: 'Añada una cartera',
    noWalletAbout: 'Sin ella nadie puede pagarle',
    latest: 'Últimos pagos',
    all: 'Todos los pagos',
    order: 'Pedido {id}',
    noOrder: 'Sin pedido',
    states: {
      paid: 'Pagado',
      settling: 'En curso',
      late: 'Tarde',
      underpaid: 'De menos',
      overpaid: 'De más',
      unmatched: 'Sin cobro',
      reversed: 'Revertido',
      refunded: 'Reembolsado',
      partlyRefunded: 'Reembolsado en parte',
    },
    ended: 'Cómo acabaron los cobros',
    endedAbout: 'De {count} creados en este tiempo',
    paid: 'Pagados',
    expired: 'Caducados',
    canceled: 'Cancelados',
    open: 'Abiertos',
    empty: 'Todavía no se ha pagado nada',
    emptyNoWallet: 'Primero diga adónde va su dinero: los pagos llegan directamente a su propia cartera.',
    emptyWallet: 'Añada una cartera',
    emptyReady: 'Su cartera está lista. Cree un cobro y abra su enlace: en cuanto se pague, lo verá aquí.',
    emptyNew: 'Nuevo pago',
    emptyShop: 'Su tienda hace lo mismo con la API:',
  },
}
