//! The proleptic Gregorian calendar over the whole range of the format's dates and timestamps.
//!
//! `chrono` ends at years ±262,000, timestamps in microseconds reach ±292,000; so the few lines needed stand here.
//! Everything floors, before 1970 as after it.

/// Microseconds of one day.
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Nanoseconds of one day.
pub(crate) const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Days from 1970-01-01 to the first day of a month. `months` counts from 1970-01 and may be negative.
pub(crate) fn days_of_month_start(months: i64) -> i64 {
    days_from_civil(1970 + months.div_euclid(12), months.rem_euclid(12) + 1, 1)
}

/// Months from 1970-01 to the month a day lies in.
pub(crate) fn months_from_days(days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    (year - 1970) * 12 + month - 1
}

/// Days from 1970-01-01 to a date; month 1..=12, day 1..=31.
///
/// Counts years from March, so that the leap day is the last of a year, in eras of 400 years (146,097 days).
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month (1..=12) and day (1..=31) of a day counted from 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Days in a month; 0 for a month that does not exist.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for ((y, m, d), days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2017, 11, 16), 17_486),
            ((1, 1, 1), -719_162),
            ((0, 1, 1), -719_528),
            ((9999, 12, 31), 2_932_896),
        ] {
            assert_eq!(days_from_civil(y, m, d), days);
            assert_eq!(civil_from_days(days), (y, m, d));
        }
    }

    #[test]
    fn agrees_with_chrono_where_chrono_reaches() {
        use chrono::Datelike;
        let epoch = chrono::NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for days in (-95_000_000i64..95_000_000).step_by(9973) {
            let date = epoch + chrono::Duration::days(days);
            let (y, m, d) = civil_from_days(days);
            assert_eq!((y, m, d), (i64::from(date.year()), i64::from(date.month()), i64::from(date.day())));
            assert_eq!(days_from_civil(y, m, d), days);
            assert!(d <= days_in_month(y, m));
            assert!(days_of_month_start(months_from_days(days)) <= days);
            assert!(days_of_month_start(months_from_days(days) + 1) > days);
        }
    }
}
